#include "data/idx.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include "base/files.h"
#include "tutti/error.h"

namespace tutti {
namespace {

constexpr uint32_t kImagesMagic = 2051;
constexpr uint32_t kLabelsMagic = 2049;
constexpr uint32_t kMaxSide = 4096;  // pixels; keeps count × rows × columns far from overflow
// Pictures shrink to a fifth. What shrinks far more, and is large, is made to fill memories.
constexpr int64_t kLargeBytes = int64_t{256} << 20;
constexpr int64_t kMostExpansion = 100;
constexpr int64_t kReadBytes = int64_t{1} << 20;

constexpr const char* kFetchAgain = "Replace it with a fresh copy of the original file.";

/// A file read from front to back, through gzip where it is compressed.
class GzipReader {
 public:
  explicit GzipReader(const std::filesystem::path& path) : path_(path) {
    std::error_code ignored;
    if (std::filesystem::is_directory(path, ignored)) throw Error("{}: is a folder, not an IDX file", path.string());
    errno = 0;
    file_ = gzopen(path.c_str(), "rb");
    if (file_ == nullptr) {
      throw Error("{}: cannot open it ({}). Put the file there, or name the folder that holds it with --data-path.",
                  path.string(), errno != 0 ? std::strerror(errno) : "out of memory");
    }
    gzbuffer(file_, 128 * 1024);
  }
  GzipReader(const GzipReader&) = delete;
  GzipReader& operator=(const GzipReader&) = delete;
  ~GzipReader() { gzclose(file_); }

  /// Up to `wanted` bytes; fewer at the end of the file.
  int64_t read(uint8_t* to, int64_t wanted) {
    int64_t total = 0;
    while (total < wanted) {
      const int got = gzread(file_, to + total, static_cast<unsigned>(std::min(wanted - total, kReadBytes)));
      if (got < 0) fail();
      if (got == 0) break;
      total += got;
    }
    return total;
  }

  /// True when the file, despite its name, is not compressed at all.
  bool is_misnamed() { return path_.extension() == ".gz" && gzdirect(file_) != 0; }
  bool is_compressed() { return gzdirect(file_) == 0; }
  /// True when the compressed stream stopped before its own end mark.
  bool is_cut_off() {
    int code = Z_OK;
    gzerror(file_, &code);
    return code == Z_BUF_ERROR;
  }

 private:
  [[noreturn]] void fail() {
    int code = Z_OK;
    const std::string text = gzerror(file_, &code);
    if (code == Z_ERRNO) throw Error("{}: reading failed: {}", path_.string(), std::strerror(errno));
    throw Error("{}: the gzip stream is corrupt ({}). {}", path_.string(), text, kFetchAgain);
  }

  std::filesystem::path path_;
  gzFile file_ = nullptr;
};

uint32_t big_endian(const uint8_t* bytes) {
  return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | uint32_t{bytes[3]};
}

std::string cut_off_text(GzipReader& reader) {
  return reader.is_cut_off() ? " (the gzip stream ends before its end mark)" : "";
}

/// Reads the magic number and `count` sizes after it.
std::array<uint32_t, 3> read_header(GzipReader& reader, const std::filesystem::path& path, uint32_t magic, int count) {
  std::array<uint8_t, 16> bytes{};
  const int64_t wanted = 4 * (1 + count);
  const int64_t got = reader.read(bytes.data(), wanted);
  const char* kind = magic == kImagesMagic ? "images" : "labels";
  if (got >= 4) {
    const uint32_t found = big_endian(bytes.data());
    if (found != magic) {
      std::string hint = "This is not an IDX file of " + std::string(kind) + ".";
      if (found == kLabelsMagic) hint = "It holds labels: were the files of images and labels swapped?";
      if (found == kImagesMagic) hint = "It holds images: were the files of images and labels swapped?";
      if (reader.is_misnamed()) hint = "It is named .gz but is not gzipped.";
      throw Error("{}: found magic number {}, expected {} ({}). {}", path.string(), found, magic, kind, hint);
    }
  }
  if (got < wanted) {
    throw Error("{}: truncated: the header of {} takes {} bytes, found {}{}. {}", path.string(), kind, wanted, got,
                cut_off_text(reader), kFetchAgain);
  }
  std::array<uint32_t, 3> sizes{};
  for (int i = 0; i < count; ++i) sizes[i] = big_endian(bytes.data() + 4 * (i + 1));
  return sizes;
}

/// Reads the `expected` bytes that must make up the rest of the file.
std::vector<uint8_t> read_body(GzipReader& reader, const std::filesystem::path& path, int64_t expected,
                               const std::string& meaning) {
  std::error_code ignored;
  const auto stored = static_cast<int64_t>(std::filesystem::file_size(path, ignored));
  if (!ignored && reader.is_compressed() && expected > kLargeBytes && expected / kMostExpansion > stored) {
    throw Error(
        "{}: {} of it would become {}, {}, more than {} times as much: no pictures are stored like that. If it is what "
        "you want, unpack it with gunzip first. {}",
        path.string(), readable_bytes(static_cast<uint64_t>(stored)), meaning,
        readable_bytes(static_cast<uint64_t>(expected)), kMostExpansion, kFetchAgain);
  }
  // Grows with what arrives, so that a damaged header cannot claim all memory. One byte more than expected shows
  // whether the file ends there, and lets zlib reach and verify its checksum.
  std::vector<uint8_t> content;
  int64_t found = 0;
  while (found <= expected) {
    const int64_t wanted = std::min(std::max(kReadBytes, found), expected + 1 - found);
    content.resize(static_cast<size_t>(found + wanted));
    const int64_t got = reader.read(content.data() + found, wanted);
    found += got;
    if (got < wanted) break;
  }
  if (found < expected) {
    throw Error("{}: truncated: its header announces {}, {} bytes, but only {} follow{}. {}", path.string(), meaning,
                expected, found, cut_off_text(reader), kFetchAgain);
  }
  if (found > expected) {
    throw Error("{}: its header announces {}, {} bytes, but more follow. {}", path.string(), meaning, expected,
                kFetchAgain);
  }
  if (reader.is_cut_off()) {
    throw Error("{}: truncated: the gzip stream ends before its end mark. {}", path.string(), kFetchAgain);
  }
  content.resize(static_cast<size_t>(expected));
  content.shrink_to_fit();
  return content;
}

}  // namespace

IdxImages read_idx_images(const std::filesystem::path& path) {
  GzipReader reader(path);
  const auto [count, rows, columns] = read_header(reader, path, kImagesMagic, 3);
  if (count == 0 || rows == 0 || columns == 0 || rows > kMaxSide || columns > kMaxSide) {
    throw Error("{}: its header announces {} images of {}x{} pixels, which cannot be (sides of 1 to {}). {}",
                path.string(), count, rows, columns, kMaxSide, kFetchAgain);
  }
  IdxImages images{count, rows, columns, {}};
  images.pixels = read_body(reader, path, images.count * images.rows * images.columns,
                            fmt::format("{} images of {}x{} pixels", count, rows, columns));
  return images;
}

std::vector<uint8_t> read_idx_labels(const std::filesystem::path& path, int classes) {
  GzipReader reader(path);
  const uint32_t count = read_header(reader, path, kLabelsMagic, 1)[0];
  if (count == 0) throw Error("{}: its header announces 0 labels. {}", path.string(), kFetchAgain);
  std::vector<uint8_t> labels = read_body(reader, path, count, fmt::format("{} labels", count));
  const auto bad = std::find_if(labels.begin(), labels.end(), [classes](uint8_t label) { return label >= classes; });
  if (bad != labels.end()) {
    throw Error("{}: label {} of sample {} is outside 0 to {}. {}", path.string(), int{*bad}, bad - labels.begin(),
                classes - 1, kFetchAgain);
  }
  return labels;
}

void check_idx_pair(const std::filesystem::path& images_path, const IdxImages& images,
                    const std::filesystem::path& labels_path, const std::vector<uint8_t>& labels) {
  if (images.count == static_cast<int64_t>(labels.size())) return;
  throw Error("{} holds {} images but {} holds {} labels. They must be a pair from the same data set.",
              images_path.string(), images.count, labels_path.string(), labels.size());
}

}  // namespace tutti
