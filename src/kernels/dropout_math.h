#pragma once

// Which elements dropout keeps. The random numbers of an element follow from a seed, from an offset that differs from
// call to call, and from the element's place.

#include <cstdint>

#include "kernels/host_device.h"

namespace tutti {

struct RandomBits {
  uint32_t word[4];
};

/// Philox 4×32 (Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", 2011) with its 7 rounds that pass all of
/// TestU01's tests; 10, the authors' choice with a margin, would make kernels wait for arithmetic instead of memory.
TUTTI_HOST_DEVICE inline RandomBits philox(uint64_t seed, uint64_t offset, uint64_t place) {
  uint32_t a = static_cast<uint32_t>(offset), b = static_cast<uint32_t>(offset >> 32);
  uint32_t c = static_cast<uint32_t>(place), d = static_cast<uint32_t>(place >> 32);
  uint32_t key0 = static_cast<uint32_t>(seed), key1 = static_cast<uint32_t>(seed >> 32);
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
  for (int round = 0; round < 7; ++round) {
    const uint64_t first = uint64_t{0xD2511F53U} * a, second = uint64_t{0xCD9E8D57U} * c;
    a = static_cast<uint32_t>(second >> 32) ^ b ^ key0;
    b = static_cast<uint32_t>(second);
    c = static_cast<uint32_t>(first >> 32) ^ d ^ key1;
    d = static_cast<uint32_t>(first);
    key0 += 0x9E3779B9U;
    key1 += 0xBB67AE85U;
  }
  return {{a, b, c, d}};
}

/// What dropout does with its elements: eight in a row get 16 bits each of one philox().
struct DropoutRule {
  static constexpr int kElementsPerDraw = 8;

  uint32_t threshold = 0;  // elements go whose bits, as the upper half of a number, are below it
  float scale = 1;         // of those that stay, so that the mean stays too; 0 where all go

  TUTTI_HOST_DEVICE bool keeps(const RandomBits& bits, int element) const {
    // Its half of the word as the upper half of a number: what is below does not change what is compared.
    const uint32_t half = element % 2 == 0 ? bits.word[element / 2] << 16 : bits.word[element / 2];
    return half >= threshold;
  }
  /// One bit per element of a draw, set if it stays.
  TUTTI_HOST_DEVICE uint32_t kept(const RandomBits& bits) const {
    uint32_t mask = 0;
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
    for (int i = 0; i < kElementsPerDraw; ++i) mask |= keeps(bits, i) ? 1U << i : 0U;
    return mask;
  }
};

/// Drops the share to the nearest of 65536 steps.
inline DropoutRule dropout_rule(double share) {
  DropoutRule rule;
  const auto steps = static_cast<uint32_t>(share * 65536 + 0.5);
  rule.threshold = steps < 65536 ? steps << 16 : ~0U;
  rule.scale = steps < 65536 ? 65536.0F / static_cast<float>(65536 - steps) : 0.0F;
  return rule;
}

}  // namespace tutti
