#include "data/png.h"

#include <png.h>

#include "data/rgb_pixels.h"
#include "tutti/error.h"

namespace tutti {
namespace {

// One byte of a deflate stream makes at most 1032 bytes, and the smallest pixel is one bit.
constexpr uint64_t kMostPixelsPerByte = 1032 * 8;

/// libpng's simplified reader, freed whatever happens.
class PngImage {
 public:
  explicit PngImage(std::string name) : name_(std::move(name)) { image_.version = PNG_IMAGE_VERSION; }
  PngImage(const PngImage&) = delete;
  PngImage& operator=(const PngImage&) = delete;
  ~PngImage() { png_image_free(&image_); }

  void begin(const std::filesystem::path& path) {
    if (png_image_begin_read_from_file(&image_, path.c_str()) == 0) fail();
  }
  void begin(std::string_view content) {
    if (png_image_begin_read_from_memory(&image_, content.data(), content.size()) == 0) fail();
    if (uint64_t{image_.width} * image_.height / kMostPixelsPerByte > content.size()) {
      throw Error("{}: its header announces {}x{} pixels, far more than its {} bytes can hold", name_, image_.width,
                  image_.height, content.size());
    }
    if (uint64_t{image_.width} * image_.height > kMostPixels) {
      throw Error("{}: has {}x{} pixels; {} million are the most that are read", name_, image_.width, image_.height,
                  kMostPixels / 1'000'000);
    }
  }

  std::vector<uint8_t> finish(png_uint_32 format) {
    image_.format = format;
    image_.flags |= PNG_IMAGE_FLAG_16BIT_sRGB;
    std::vector<uint8_t> bytes(PNG_IMAGE_SIZE(image_));
    if (png_image_finish_read(&image_, nullptr, bytes.data(), 0, nullptr) == 0) fail();
    return bytes;
  }

  bool has_alpha() const { return (image_.format & PNG_FORMAT_FLAG_ALPHA) != 0; }
  PngSize size() const { return {image_.width, image_.height}; }

 private:
  [[noreturn]] void fail() const {
    throw Error("{}: not a PNG that can be read ({}). Replace it with a fresh copy.", name_, image_.message);
  }

  const std::string name_;
  png_image image_{};
};

/// Colours, or grey levels, with alpha after them: shown on black and without alpha.
void drop_alpha(std::vector<uint8_t>& bytes, size_t channels) {
  const size_t pixels = bytes.size() / (channels + 1);
  for (size_t i = 0; i < pixels; ++i) {
    const uint8_t* const from = bytes.data() + i * (channels + 1);
    const unsigned alpha = from[channels];
    uint8_t* const to = bytes.data() + i * channels;
    for (size_t c = 0; c < channels; ++c)
      to[c] = alpha == 255 ? from[c] : static_cast<uint8_t>((from[c] * alpha + 127) / 255);
  }
  bytes.resize(pixels * channels);
}

PngPixels decode(std::string_view content, const std::string& name, png_uint_32 format, size_t channels) {
  PngImage image(name);
  image.begin(content);
  if (!image.has_alpha()) return {image.size(), image.finish(format)};
  // Asked to drop alpha, libpng would blend in linear light, slowly.
  PngPixels pixels{image.size(), image.finish(format | PNG_FORMAT_FLAG_ALPHA)};
  drop_alpha(pixels.bytes, channels);
  return pixels;
}

}  // namespace

PngSize read_png_size(const std::filesystem::path& path) {
  PngImage image(path.string());
  image.begin(path);
  return image.size();
}

PngPixels decode_png_rgb(std::string_view content, const std::string& name) {
  return decode(content, name, PNG_FORMAT_RGB, 3);
}

PngPixels decode_png_grey(std::string_view content, const std::string& name) {
  return decode(content, name, PNG_FORMAT_GRAY, 1);
}

std::string encode_png_grey(const PngPixels& pixels) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(pixels.size.width);
  image.height = static_cast<png_uint_32>(pixels.size.height);
  image.format = PNG_FORMAT_GRAY;
  png_alloc_size_t bytes = PNG_IMAGE_PNG_SIZE_MAX(image);
  std::string content(bytes, '\0');
  const bool is_written =
      png_image_write_to_memory(&image, content.data(), &bytes, 0, pixels.bytes.data(), 0, nullptr) != 0;
  const std::string problem = image.message;
  png_image_free(&image);
  if (!is_written) throw Error("cannot make a PNG: {}", problem);
  content.resize(bytes);
  return content;
}

}  // namespace tutti
