#pragma once

// Device code, for .cu files.

#include "kernels/dropout.h"

namespace tutti {

/// Seed and offset of a kernel of forward; its first thread keeps them for backward.
struct DrawnNumbers {
  uint64_t seed = 0, offset = 0;
};

__device__ inline DrawnNumbers draw(const DropoutRun& run) {
  DrawnNumbers numbers{run.seed, run.offset};
  if (run.seed_at != nullptr) {
    numbers.seed = static_cast<uint64_t>(*run.seed_at);
    numbers.offset = static_cast<uint64_t>(*run.offset_at) + run.offset;
  }
  if (blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x == 0) {
    run.drawn[0] = numbers.seed;
    run.drawn[1] = numbers.offset;
  }
  return numbers;
}

__device__ inline DrawnNumbers draw_again(const DropoutRun& run) { return {run.drawn[0], run.drawn[1]}; }

/// What to multiply elements by, the scale or 0, of which the first stands at `place`: one, or 8 of them at a place
/// that 8 divides. Returns a bit per element, set if it stays.
template <int kCount>
__device__ inline uint32_t choose(const DropoutRule& rule, const DrawnNumbers& numbers, int64_t place,
                                  float (&factors)[kCount]) {
  constexpr int kPerDraw = DropoutRule::kElementsPerDraw;
  static_assert(kCount == 1 || kCount == kPerDraw, "no other loads");
  const RandomBits bits = philox(numbers.seed, numbers.offset, static_cast<uint64_t>(place) / kPerDraw);
  if constexpr (kCount == 1) {
    const uint32_t kept = rule.kept(bits) >> (place % kPerDraw) & 1;
    factors[0] = kept != 0 ? rule.scale : 0.0F;
    return kept;
  } else {
    uint32_t kept = 0;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const bool is_kept = rule.keeps(bits, i);
      factors[i] = is_kept ? rule.scale : 0.0F;
      if (is_kept) kept |= 1U << i;
    }
    return kept;
  }
}

/// The same from the bits.
template <int kCount>
__device__ inline void choose_again(const DropoutRule& rule, uint32_t kept, float (&factors)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) factors[i] = (kept & (1U << i)) != 0 ? rule.scale : 0.0F;
}

}  // namespace tutti
