#pragma once

// Inner loops over registers full of floats, through the compiler's vector types, written once and compiled for each
// instruction set. Files that use them are compiled with -ffp-contract=fast, so that a * b + c becomes one instruction.

#include <cstdint>

namespace tutti {

/// `kWidth` floats, one register: 16 with AVX-512, 8 with AVX2, 4 with SSE or NEON. Vectors wider than a register are
/// no substitute: the compiler takes them apart through memory.
template <int kWidth>
struct LanesOf;
template <>
struct LanesOf<16> {
  using Value = float __attribute__((vector_size(64)));
  using InMemory = float __attribute__((vector_size(64), aligned(4), may_alias));
};
template <>
struct LanesOf<8> {
  using Value = float __attribute__((vector_size(32)));
  using InMemory = float __attribute__((vector_size(32), aligned(4), may_alias));
};
template <>
struct LanesOf<4> {
  using Value = float __attribute__((vector_size(16)));
  using InMemory = float __attribute__((vector_size(16), aligned(4), may_alias));
};

/// The channels of a layer come in multiples of this, the widest register.
constexpr int kLanes = 16;

#define TUTTI_INLINE inline __attribute__((always_inline))

/// Floats in memory, wherever they lie. A reference, because such an argument has no stable calling convention.
template <int kWidth>
TUTTI_INLINE typename LanesOf<kWidth>::InMemory& lanes(float* at) {
  return *reinterpret_cast<typename LanesOf<kWidth>::InMemory*>(at);
}
template <int kWidth>
TUTTI_INLINE const typename LanesOf<kWidth>::InMemory& lanes(const float* at) {
  return *reinterpret_cast<const typename LanesOf<kWidth>::InMemory*>(at);
}

// One binary runs everywhere and still uses AVX-512 where there is. Sanitizers cannot follow the way in which the
// compiler picks a clone.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define TUTTI_HAS_CLONES 1

/// Put before a function of plain loops, which the compiler vectorizes: compiles it once per instruction set.
#define TUTTI_PER_CPU __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))

template <typename Kernel, typename... Arguments>
__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma"))) void run_with_avx512(Arguments... arguments) {
  Kernel::template run<16>(arguments...);
}
template <typename Kernel, typename... Arguments>
__attribute__((target("avx2,fma"))) void run_with_avx2(Arguments... arguments) {
  Kernel::template run<8>(arguments...);
}

#else
#define TUTTI_PER_CPU
#endif

template <typename Kernel, typename... Arguments>
void run_anywhere(Arguments... arguments) {
  Kernel::template run<4>(arguments...);
}

template <typename Kernel, typename... Arguments>
auto fastest_here() -> void (*)(Arguments...) {
#ifdef TUTTI_HAS_CLONES
  const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (has_avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    return run_with_avx512<Kernel, Arguments...>;
  if (has_avx2) return run_with_avx2<Kernel, Arguments...>;
#endif
  return run_anywhere<Kernel, Arguments...>;
}

/// Runs Kernel::run<kWidth>, compiled for the widest registers that this processor has. `run` is TUTTI_INLINE.
template <typename Kernel, typename... Arguments>
void run_widest(Arguments... arguments) {
  static const auto run = fastest_here<Kernel, Arguments...>();
  run(arguments...);
}

}  // namespace tutti
