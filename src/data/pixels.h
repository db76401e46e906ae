#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "data/dataset.h"

namespace tutti {

constexpr int64_t kDigitSide = 28;
constexpr int64_t kDigitPixels = kDigitSide * kDigitSide;

SampleTraits digit_traits();

/// Writes a picture's file into row `row`: its grey levels, scaled to 28×28. Digits are light on dark, as MNIST has
/// them.
void encode_digit(std::string_view content, const std::string& name, int64_t row, Batch& batch);

/// Writes one digit into row `row`: bytes become floats with MNIST's mean 0 and deviation 1.
void store_digit(const uint8_t* pixels, int label, int64_t row, Batch& batch);

}  // namespace tutti
