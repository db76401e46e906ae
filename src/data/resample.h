#pragma once

#include <cstdint>
#include <vector>

#include "data/rgb_pixels.h"

namespace tutti {

/// Where the pixels of one side of a resized picture come from: a triangle as wide as a pixel of the coarser picture is
/// laid over the source. The numbers are those of Pillow's BILINEAR, and so of torchvision's transforms of pictures.
struct ResampleAxis {
  std::vector<int64_t> first;    // of each result: its first source pixel
  std::vector<int32_t> weights;  // `taps` of each result, in 1/2^22
  int64_t taps = 0;

  int64_t outputs() const { return static_cast<int64_t>(first.size()); }
  /// The source pixels that count are [begin, end).
  int64_t begin = 0;
  int64_t end = 0;
};

/// `outputs` pixels that show [start, start + extent) of the source; nothing outside [low, high) counts.
ResampleAxis make_axis(double start, double extent, int64_t low, int64_t high, int64_t outputs);

/// `source` is the part [x.begin, x.end) × [y.begin, y.end). Columns first, rounded to bytes, then rows, as Pillow.
RgbPixels resample(const RgbPixels& source, const ResampleAxis& x, const ResampleAxis& y);

}  // namespace tutti
