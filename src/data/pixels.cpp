#include "data/pixels.h"

#include <torch/cuda.h>

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

Batch make_digit_batch(int64_t count, bool pinned) {
  // Without a GPU there is nothing to pin for, and torch refuses to.
  const bool pin = pinned && torch::cuda::is_available();
  Batch batch;
  batch.inputs = {torch::empty({count, 1, kDigitSide, kDigitSide}, torch::dtype(torch::kFloat).pinned_memory(pin))};
  batch.target = torch::empty({count}, torch::dtype(torch::kLong).pinned_memory(pin));
  batch.size = count;
  return batch;
}

void store_digit(const uint8_t* pixels, int label, int64_t row, Batch& batch) {
  float* to = batch.inputs[0].data_ptr<float>() + row * kDigitPixels;
  for (int64_t i = 0; i < kDigitPixels; ++i) to[i] = kNormalized[pixels[i]];
  batch.target.data_ptr<int64_t>()[row] = label;
}

}  // namespace tutti
