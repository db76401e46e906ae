#pragma once

#include <cstdint>

#include "kernels/dropout_math.h"

namespace tutti {

/// A dropout of forward, whose choices backward repeats.
struct DropoutRun {
  DropoutRule rule;  // threshold 0: nothing is dropped, and nothing below is read
  // Of forward, as torch's generator hands them out: the seed, and where in its sequence this call stands. While a
  // step is recorded both lie in device memory, where each replay finds new ones, and `offset` is added to the second.
  uint64_t seed = 0, offset = 0;
  const int64_t* seed_at = nullptr;
  const int64_t* offset_at = nullptr;
  // In device memory, what forward leaves for backward: seed and offset, and a bit per element that tells if it was
  // kept. Without bits, where there are none, their random numbers are computed again.
  uint64_t* drawn = nullptr;
  uint8_t* kept = nullptr;
};

}  // namespace tutti
