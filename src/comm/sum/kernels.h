#pragma once

#include <cstddef>

namespace tutti {

/// Element-wise sums of several arrays, for one instruction set. Each element is ((x0 + x1) + x2) + … in the order of
/// `sources`; 16-bit floats are added in float32 and rounded once, to nearest even; int64 wraps. The sum is written
/// to every target. A target may be one of the sources, but must not overlap one partly.
struct SumKernels {
  using Sum = void (*)(void* const* targets, int n_targets, const void* const* sources, int n_sources,
                       std::size_t count);
  const char* name;
  Sum f32, bf16, f16, i64;
};

}  // namespace tutti
