#pragma once

#include <cstdint>

#include "data/dataset.h"

namespace tutti {

constexpr int64_t kDigitSide = 28;
constexpr int64_t kDigitPixels = kDigitSide * kDigitSide;

SampleTraits digit_traits();

/// A grey level with MNIST's mean 0 and deviation 1.
float normalized_digit(uint8_t grey);

/// Writes one digit into row `row`: bytes become floats with MNIST's mean 0 and deviation 1.
void store_digit(const uint8_t* pixels, int label, int64_t row, Batch& batch);

}  // namespace tutti
