#include "data/pixels.h"

#include <array>

namespace tutti {
namespace {

constexpr std::array<float, 256> normalized_bytes() {
  std::array<float, 256> table{};
  for (int byte = 0; byte < 256; ++byte) table[byte] = static_cast<float>((byte / 255.0 - 0.1307) / 0.3081);
  return table;
}

constexpr std::array<float, 256> kNormalized = normalized_bytes();

}  // namespace

SampleTraits digit_traits() { return {SampleKind::images, {1, kDigitSide, kDigitSide}, 10, 0, 0}; }

float normalized_digit(uint8_t grey) { return kNormalized[grey]; }

void store_digit(const uint8_t* pixels, int label, int64_t row, Batch& batch) {
  float* to = batch.inputs[0].data_ptr<float>() + row * kDigitPixels;
  for (int64_t i = 0; i < kDigitPixels; ++i) to[i] = kNormalized[pixels[i]];
  batch.target.data_ptr<int64_t>()[row] = label;
}

}  // namespace tutti
