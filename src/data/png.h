#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace tutti {

struct PngSize {
  int64_t width = 0;
  int64_t height = 0;
  bool operator==(const PngSize& other) const { return width == other.width && height == other.height; }
  bool operator!=(const PngSize& other) const { return !(*this == other); }
};

struct PngPixels {
  PngSize size;
  std::vector<uint8_t> bytes;  // row by row
};

/// From the file's header alone. Throws Error naming the file.
PngSize read_png_size(const std::filesystem::path& path);

/// Any PNG (grey, colour, palette, 8 or 16 bits, interlaced) as red, green, blue; transparent parts turn black.
/// `name` is what an Error calls it. Memory is taken only as far as `content` can fill it.
PngPixels decode_png_rgb(std::string_view content, const std::string& name);
/// As grey levels, one byte a pixel.
PngPixels decode_png_grey(std::string_view content, const std::string& name);

/// A PNG of grey levels, one byte a pixel. Throws Error.
std::string encode_png_grey(const PngPixels& pixels);

}  // namespace tutti
