#pragma once

// Sixteen floats at a time, through the compiler's vector types: one AVX-512 register, two of AVX2, four of SSE or
// NEON. Files that use them are compiled with -ffp-contract=fast, so that a * b + c becomes one instruction.

#include <cstdint>

namespace tutti {

constexpr int kLanes = 16;

using Lanes = float __attribute__((vector_size(64)));

/// Sixteen floats in memory, wherever they lie. A reference, because a Lanes argument has no stable calling convention.
using LanesInMemory = float __attribute__((vector_size(64), aligned(4), may_alias));
inline __attribute__((always_inline)) LanesInMemory& lanes(float* at) { return *reinterpret_cast<LanesInMemory*>(at); }
inline __attribute__((always_inline)) const LanesInMemory& lanes(const float* at) {
  return *reinterpret_cast<const LanesInMemory*>(at);
}

}  // namespace tutti

// Put before a function: compiles it once per instruction set and picks one when the program starts. One binary then
// runs everywhere and still uses AVX-512 where there is. Sanitizers cannot follow the way in which it picks.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define TUTTI_PER_CPU __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define TUTTI_PER_CPU
#endif
