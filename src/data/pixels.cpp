#include "data/pixels.h"

#include <array>
#include <cmath>

#include "data/picture_input.h"

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

void store_digit(const uint8_t* pixels, int label, int64_t row, Batch& batch) {
  float* to = batch.inputs[0].data_ptr<float>() + row * kDigitPixels;
  for (int64_t i = 0; i < kDigitPixels; ++i) to[i] = kNormalized[pixels[i]];
  batch.target.data_ptr<int64_t>()[row] = label;
}

void encode_digit(std::string_view content, const std::string& name, int64_t row, Batch& batch) {
  const torch::Tensor levels = read_picture(content, name, {1, kDigitSide, kDigitSide});
  std::array<uint8_t, kDigitPixels> pixels;
  for (int64_t i = 0; i < kDigitPixels; ++i)
    pixels[static_cast<size_t>(i)] = static_cast<uint8_t>(std::lround(levels.data_ptr<float>()[i]));
  store_digit(pixels.data(), /*label=*/0, row, batch);
}

}  // namespace tutti
