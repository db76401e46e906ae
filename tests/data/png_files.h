#pragma once

#include <zlib.h>

#include <cstdint>
#include <string>

#include "data/idx_files.h"

namespace tutti::test {

enum class PngColour : char { kGrey = 0, kRgb = 2, kGreyAlpha = 4, kRgba = 6 };

inline std::string png_chunk(const std::string& type, const std::string& content) {
  const std::string body = type + content;
  const auto crc = crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size()));
  return big_endian(static_cast<uint32_t>(content.size())) + body + big_endian(static_cast<uint32_t>(crc));
}

/// A PNG file of the samples given row by row, without libpng.
inline std::string png_file(uint32_t width, uint32_t height, PngColour colour, const std::string& samples,
                            int bits = 8) {
  const size_t row = height > 0 ? samples.size() / height : 0;
  std::string raw;
  for (uint32_t y = 0; y < height; ++y) raw += '\0' + samples.substr(y * row, row);
  uLongf packed_size = compressBound(static_cast<uLong>(raw.size()));
  std::string packed(packed_size, '\0');
  compress(reinterpret_cast<Bytef*>(packed.data()), &packed_size, reinterpret_cast<const Bytef*>(raw.data()),
           static_cast<uLong>(raw.size()));
  packed.resize(packed_size);
  const std::string header =
      big_endian(width) + big_endian(height) + static_cast<char>(bits) + static_cast<char>(colour) + std::string(3, 0);
  return "\x89PNG\r\n\x1a\n" + png_chunk("IHDR", header) + png_chunk("IDAT", packed) + png_chunk("IEND", "");
}

}  // namespace tutti::test
