#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "tutti/communicator.h"

namespace tutti::test {

// Plain scalar arithmetic of all types, written independently of the transports, to compare them with. The bytes of
// arrays are kept in vectors of uint64_t, so that they are aligned for every type.

inline float f32_of_bits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
inline uint32_t bits_of_f32(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

inline float f32_of_bf16(uint16_t value) { return f32_of_bits(static_cast<uint32_t>(value) << 16); }
inline float f32_of_f16(uint16_t value) {
  const int exponent = (value >> 10) & 31;
  const int fraction = value & 1023;
  double magnitude = exponent == 31  ? (fraction == 0 ? HUGE_VAL : std::nan(""))
                     : exponent == 0 ? std::ldexp(fraction, -24)
                                     : std::ldexp(1024 + fraction, exponent - 25);
  return static_cast<float>(value & 0x8000 ? -magnitude : magnitude);
}

/// The nearest of all values with `digits` binary digits and no exponent below `least`; ties to even.
inline double round_to(double value, int digits, int least) {
  if (value == 0 || !std::isfinite(value)) return value;
  const int exponent = std::max(std::ilogb(value) - (digits - 1), least);
  return std::ldexp(std::nearbyint(std::ldexp(value, -exponent)), exponent);
}
inline uint16_t bf16_of_f32(float value) {
  if (std::isnan(value)) return 0x7FC0;
  const double rounded = round_to(value, 8, -133);
  // Beyond float's range, the conversion would be undefined.
  if (std::abs(rounded) > 0x1.FEp127) return value < 0 ? 0xFF80 : 0x7F80;
  return static_cast<uint16_t>(bits_of_f32(static_cast<float>(rounded)) >> 16);
}
inline uint16_t f16_of_f32(float value) {
  if (std::isnan(value)) return 0x7E00;
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double magnitude = std::abs(round_to(value, 11, -24));
  if (magnitude > 65504) return static_cast<uint16_t>(sign | 0x7C00);
  if (magnitude < 0x1p-14) return static_cast<uint16_t>(sign | static_cast<int>(magnitude * 0x1p24));
  const int exponent = std::ilogb(magnitude);
  return static_cast<uint16_t>(sign | ((exponent + 15) << 10) |
                               (static_cast<int>(std::ldexp(magnitude, 10 - exponent)) - 1024));
}

using Words = std::vector<uint64_t>;

inline Words words_for(DataType type, std::size_t count) { return Words((count * bytes_of(type) + 7) / 8 + 1); }

/// Numbers whose sum depends on the order in which they are added.
inline Words random_numbers(DataType type, std::size_t count, unsigned seed) {
  Words words = words_for(type, count);
  auto* const bytes = reinterpret_cast<unsigned char*>(words.data());
  std::mt19937_64 random(seed);
  for (std::size_t i = 0; i < count; ++i) {
    const uint64_t bits = random();
    if (type == DataType::i64) {
      std::memcpy(bytes + 8 * i, &bits, 8);
      continue;
    }
    // Sizes from 2⁻⁴ to 2³, either sign.
    const float value = f32_of_bits(static_cast<uint32_t>((bits & 0x807FFFFF) | ((123 + (bits >> 40) % 8) << 23)));
    if (type == DataType::f32) {
      std::memcpy(bytes + 4 * i, &value, 4);
    } else {
      const uint16_t half = type == DataType::bf16 ? bf16_of_f32(value) : f16_of_f32(value);
      std::memcpy(bytes + 2 * i, &half, 2);
    }
  }
  return words;
}

/// The sum of arrays, in their order.
inline Words reference_sum(DataType type, const std::vector<Words>& inputs, std::size_t count) {
  Words result = words_for(type, count);
  auto* const out = reinterpret_cast<unsigned char*>(result.data());
  for (std::size_t i = 0; i < count; ++i) {
    float sum = 0;
    uint64_t whole = 0;
    for (std::size_t r = 0; r < inputs.size(); ++r) {
      const auto* const in = reinterpret_cast<const unsigned char*>(inputs[r].data());
      float value = 0;
      uint16_t half = 0;
      uint64_t word = 0;
      switch (type) {
        case DataType::f32:
          std::memcpy(&value, in + 4 * i, 4);
          break;
        case DataType::i64:
          std::memcpy(&word, in + 8 * i, 8);
          whole += word;
          break;
        default:
          std::memcpy(&half, in + 2 * i, 2);
          value = type == DataType::bf16 ? f32_of_bf16(half) : f32_of_f16(half);
      }
      sum = r == 0 ? value : sum + value;
    }
    if (type == DataType::i64) {
      std::memcpy(out + 8 * i, &whole, 8);
    } else if (type == DataType::f32) {
      std::memcpy(out + 4 * i, &sum, 4);
    } else {
      const uint16_t half = type == DataType::bf16 ? bf16_of_f32(sum) : f16_of_f32(sum);
      std::memcpy(out + 2 * i, &half, 2);
    }
  }
  return result;
}

inline const char* name_of(DataType type) {
  return type == DataType::f32 ? "f32" : type == DataType::bf16 ? "bf16" : type == DataType::f16 ? "f16" : "i64";
}

constexpr DataType kAllTypes[] = {DataType::f32, DataType::bf16, DataType::f16, DataType::i64};

}  // namespace tutti::test
