// libjpeg reports errors by a call that must not return. Ours jumps back to guarded(), past frames of libjpeg and of
// plain functions here that own nothing; Errors are thrown from there.

#include "data/jpeg.h"

#include <csetjmp>
#include <cstdio>

#include <jpeglib.h>

#include <jerror.h>

#include <algorithm>
#include <cstring>

#include "data/exif.h"
#include "tutti/error.h"

namespace tutti {

/// What libjpeg's callbacks find: its error manager, where to jump, and what happened.
struct JpegFailure {
  jpeg_error_mgr manager{};  // first: libjpeg's pointer to it is one to this
  std::jmp_buf back{};
  char message[JMSG_LENGTH_MAX]{};
};

namespace {

// A block of 8x8 pixels takes one bit at the least, in a progressive file.
constexpr uint64_t kMostJpegPixelsPerByte = 1024;
// A file of many scans would take long: each goes over the whole picture. Programs write about ten.
constexpr int kMostScans = 100;
// Of a progressive file, whose coefficients are all kept.
constexpr long kMostDecoderBytes = 700L << 20;
constexpr unsigned kLongestSegment = 0xffff;
// Where chroma is coarser, upsampling looks beyond the part: by less than this many pixels.
constexpr int64_t kMargin = 16;

[[noreturn]] void on_error(j_common_ptr common) {
  auto* const failure = reinterpret_cast<JpegFailure*>(common->err);
  failure->manager.format_message(common, failure->message);
  std::longjmp(failure->back, 1);
}

/// libjpeg goes on with grey pixels where data is damaged. A network shall not learn them.
void on_message(j_common_ptr common, int level) {
  if (level >= 0) return;
  switch (common->err->msg_code) {
    case JWRN_HIT_MARKER:
    case JWRN_HUFF_BAD_CODE:
    case JWRN_ARITH_BAD_CODE:
    case JWRN_JPEG_EOF:
    case JWRN_MUST_RESYNC:
      on_error(common);
    default:  // oddities that leave the pixels right
      break;
  }
}

void on_progress(j_common_ptr common) {
  if (reinterpret_cast<j_decompress_ptr>(common)->input_scan_number <= kMostScans) return;
  auto* const failure = reinterpret_cast<JpegFailure*>(common->err);
  std::snprintf(failure->message, sizeof failure->message, "it has more than %d scans", kMostScans);
  std::longjmp(failure->back, 1);
}

void print_nothing(j_common_ptr) {}

/// False when libjpeg gave up in `work`, which owns nothing.
template <typename Work>
bool guarded(JpegFailure& failure, const Work& work) {
  if (setjmp(failure.back) != 0) return false;  // NOLINT: libjpeg's way
  work();
  return true;
}

}  // namespace

struct JpegFile::Decoder {
  explicit Decoder(std::string file_name) : name(std::move(file_name)) {
    info.err = jpeg_std_error(&failure.manager);
    failure.manager.error_exit = on_error;
    failure.manager.emit_message = on_message;
    failure.manager.output_message = print_nothing;
    progress.progress_monitor = on_progress;
  }
  ~Decoder() {
    guarded(failure, [this] { jpeg_destroy_decompress(&info); });
  }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  [[noreturn]] void fail() const {
    throw Error("{}: not a JPEG that can be read ({}). Replace it with a fresh copy.", name, failure.message);
  }

  bool is_inverted_cmyk() const { return info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK; }

  /// Calls libjpeg alone: may be jumped out of. `row` has room for the whole width, `to` for the part.
  void read_part(const PixelRect& part, uint8_t* row, uint8_t* to) {
    jpeg_start_decompress(&info);
    const int64_t channels = info.output_components;
    const int64_t first = std::max<int64_t>(0, part.x - kMargin);
    auto x = static_cast<JDIMENSION>(first);
    auto width = static_cast<JDIMENSION>(std::min<int64_t>(info.output_width, part.x + part.width + kMargin) - first);
    if (width < info.output_width) jpeg_crop_scanline(&info, &x, &width);  // widens it to whole blocks
    if (part.y > 0) jpeg_skip_scanlines(&info, static_cast<JDIMENSION>(part.y));
    const uint8_t* const from = row + (part.x - x) * channels;
    for (int64_t y = 0; y < part.height; ++y, to += part.width * 3) {
      jpeg_read_scanlines(&info, &row, 1);
      if (channels == 3) {
        std::memcpy(to, from, static_cast<size_t>(part.width * 3));
        continue;
      }
      for (int64_t i = 0; i < part.width; ++i)
        for (int64_t c = 0; c < 3; ++c)
          to[i * 3 + c] = static_cast<uint8_t>((from[i * 4 + c] * from[i * 4 + 3] + 127) / 255);
    }
    jpeg_abort_decompress(&info);
  }

  const std::string name;
  JpegFailure failure;
  jpeg_progress_mgr progress{};
  jpeg_decompress_struct info{};
  int orientation = 1;
};

JpegFile::JpegFile(std::string_view content, std::string name) : decoder_(std::make_unique<Decoder>(std::move(name))) {
  Decoder& decoder = *decoder_;
  jpeg_decompress_struct& info = decoder.info;
  const bool is_read = guarded(decoder.failure, [&info, &decoder, content] {
    jpeg_create_decompress(&info);
    info.progress = &decoder.progress;
    info.mem->max_memory_to_use = kMostDecoderBytes;
    jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(content.data()), content.size());
    jpeg_save_markers(&info, JPEG_APP0 + 1, kLongestSegment);
    jpeg_read_header(&info, TRUE);
  });
  if (!is_read) decoder.fail();
  const uint64_t pixels = uint64_t{info.image_width} * info.image_height;
  if (pixels / kMostJpegPixelsPerByte > content.size())
    throw Error("{}: its header announces {}x{} pixels, far more than its {} bytes can hold", decoder.name,
                info.image_width, info.image_height, content.size());
  if (pixels > kMostPixels)
    throw Error("{}: has {}x{} pixels; {} million are the most that are read", decoder.name, info.image_width,
                info.image_height, kMostPixels / 1'000'000);
  for (const jpeg_marker_struct* marker = info.marker_list; marker != nullptr; marker = marker->next) {
    const int orientation =
        exif_orientation({reinterpret_cast<const char*>(marker->data), static_cast<size_t>(marker->data_length)});
    if (orientation != 1) decoder.orientation = orientation;
  }
}

JpegFile::~JpegFile() = default;

int64_t JpegFile::width() const { return decoder_->info.image_width; }
int64_t JpegFile::height() const { return decoder_->info.image_height; }
int JpegFile::orientation() const { return decoder_->orientation; }

RgbPixels JpegFile::decode(const PixelRect& part, int reduction) {
  Decoder& decoder = *decoder_;
  jpeg_decompress_struct& info = decoder.info;
  info.scale_num = 1;
  info.scale_denom = static_cast<unsigned>(reduction);
  info.dct_method = JDCT_ISLOW;  // the same bits on every machine
  info.out_color_space = decoder.is_inverted_cmyk() ? JCS_CMYK : JCS_RGB;
  RgbPixels pixels{part.width, part.height, std::vector<uint8_t>(static_cast<size_t>(part.width * part.height * 3))};
  std::vector<uint8_t> row((info.image_width + 1) * size_t{4});
  uint8_t* const one_row = row.data();
  uint8_t* const to = pixels.bytes.data();
  if (!guarded(decoder.failure, [&decoder, &part, one_row, to] { decoder.read_part(part, one_row, to); }))
    decoder.fail();
  return pixels;
}

}  // namespace tutti
