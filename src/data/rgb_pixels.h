#pragma once

#include <cstdint>
#include <vector>

namespace tutti {

/// The most pixels that a picture file may have: a hundred times what a network takes. Without a limit 100 KB could ask
/// for gigabytes.
constexpr uint64_t kMostPixels = 100'000'000;

/// Part of a picture.
struct PixelRect {
  int64_t x = 0;
  int64_t y = 0;
  int64_t width = 0;
  int64_t height = 0;
};

/// Red, green, blue, row by row.
struct RgbPixels {
  int64_t width = 0;
  int64_t height = 0;
  std::vector<uint8_t> bytes;

  const uint8_t* at(int64_t x, int64_t y) const { return bytes.data() + (y * width + x) * 3; }
};

}  // namespace tutti
