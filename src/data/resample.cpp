#include "data/resample.h"

#include <algorithm>
#include <cmath>

namespace tutti {
namespace {

constexpr int kWeightBits = 22;
constexpr int32_t kHalf = 1 << (kWeightBits - 1);

uint8_t to_byte(int32_t sum) { return static_cast<uint8_t>(std::clamp(sum >> kWeightBits, 0, 255)); }

/// One row, in `x.outputs()` pixels. `source` points to pixel x.begin.
void resample_row(const uint8_t* source, const ResampleAxis& x, uint8_t* to) {
  const int32_t* weight = x.weights.data();
  for (const int64_t first : x.first) {
    const uint8_t* from = source + (first - x.begin) * 3;
    int32_t red = kHalf, green = kHalf, blue = kHalf;
    for (int64_t tap = 0; tap < x.taps; ++tap, from += 3) {
      red += from[0] * weight[tap];
      green += from[1] * weight[tap];
      blue += from[2] * weight[tap];
    }
    weight += x.taps;
    *to++ = to_byte(red);
    *to++ = to_byte(green);
    *to++ = to_byte(blue);
  }
}

}  // namespace

ResampleAxis make_axis(double start, double extent, int64_t low, int64_t high, int64_t outputs) {
  const double scale = extent / static_cast<double>(outputs);
  const double support = std::max(scale, 1.0);
  struct Taps {
    int64_t first;
    std::vector<double> weights;
  };
  std::vector<Taps> all;
  ResampleAxis axis;
  for (int64_t i = 0; i < outputs; ++i) {
    const double centre = start + (static_cast<double>(i) + 0.5) * scale;
    const auto first = std::clamp(int64_t{std::lround(centre - support)}, low, high - 1);
    const auto end = std::clamp(int64_t{std::lround(centre + support)}, first + 1, high);
    Taps taps{first, {}};
    double sum = 0;
    for (int64_t at = first; at < end; ++at) {
      const double distance = std::abs((static_cast<double>(at) - centre + 0.5) / support);
      taps.weights.push_back(std::max(0.0, 1 - distance));
      sum += taps.weights.back();
    }
    if (sum > 0)
      for (double& weight : taps.weights) weight /= sum;
    else
      taps.weights[0] = 1;
    axis.taps = std::max(axis.taps, static_cast<int64_t>(taps.weights.size()));
    all.push_back(std::move(taps));
  }
  axis.begin = all.front().first;
  axis.end = axis.begin;
  for (const Taps& taps : all) axis.end = std::max(axis.end, taps.first + static_cast<int64_t>(taps.weights.size()));
  axis.taps = std::min(axis.taps, axis.end - axis.begin);
  for (const Taps& taps : all) {
    // All have the same number of taps, those that weigh nothing in front where the source ends.
    const int64_t first = std::min(taps.first, axis.end - axis.taps);
    axis.first.push_back(first);
    const size_t row = axis.weights.size();
    axis.weights.resize(row + static_cast<size_t>(axis.taps));
    for (size_t i = 0; i < taps.weights.size(); ++i)
      axis.weights[row + static_cast<size_t>(taps.first - first) + i] =
          static_cast<int32_t>(std::lround(taps.weights[i] * (1 << kWeightBits)));
  }
  return axis;
}

RgbPixels resample(const RgbPixels& source, const ResampleAxis& x, const ResampleAxis& y) {
  const int64_t width = x.outputs() * 3;
  std::vector<uint8_t> rows(static_cast<size_t>(source.height * width));
  for (int64_t row = 0; row < source.height; ++row) resample_row(source.at(0, row), x, rows.data() + row * width);
  RgbPixels result{x.outputs(), y.outputs(), std::vector<uint8_t>(static_cast<size_t>(y.outputs() * width))};
  std::vector<int32_t> sums(static_cast<size_t>(width));
  for (int64_t out = 0; out < y.outputs(); ++out) {
    std::fill(sums.begin(), sums.end(), kHalf);
    for (int64_t tap = 0; tap < y.taps; ++tap) {
      const int32_t weight = y.weights[static_cast<size_t>(out * y.taps + tap)];
      if (weight == 0) continue;
      const uint8_t* const from = rows.data() + (y.first[static_cast<size_t>(out)] - y.begin + tap) * width;
      for (int64_t i = 0; i < width; ++i) sums[static_cast<size_t>(i)] += from[i] * weight;
    }
    uint8_t* const to = result.bytes.data() + out * width;
    for (int64_t i = 0; i < width; ++i) to[i] = to_byte(sums[static_cast<size_t>(i)]);
  }
  return result;
}

}  // namespace tutti
