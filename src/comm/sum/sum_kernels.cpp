// Compiled once per instruction set, with TUTTI_SUM_ISA naming the namespace (see CMakeLists.txt). Nothing here may be
// an inline function of a header: the linker could keep the copy made for a processor that this machine is not.
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __F16C__
#include <immintrin.h>
#endif

#include "comm/sum/kernels.h"

// Element i of a target depends on elements i of the sources only, so that writing in place is safe to vectorize.
#ifdef __clang__
#define TUTTI_INDEPENDENT_ITERATIONS _Pragma("clang loop vectorize(assume_safety)")
#else
#define TUTTI_INDEPENDENT_ITERATIONS _Pragma("GCC ivdep")
#endif

namespace tutti::TUTTI_SUM_ISA {
namespace {

// Small enough that a block of partial sums stays in the first-level cache beside the lines being read.
constexpr size_t kBlock = 1024;

size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

// ---- f32 and i64: added as they are ----

/// The sums of a fixed number of arrays, each element kept in a register from the first load to the last store.
template <int kSources, typename T>
void sum_in_registers(T* const* targets, int n_targets, const T* const* sources, size_t begin, size_t end) {
  const T* in[kSources];
  for (int s = 0; s < kSources; ++s) in[s] = sources[s];
  const auto sum = [&](size_t i) {
    T value = in[0][i];
    for (int s = 1; s < kSources; ++s) value += in[s][i];
    return value;
  };
  if (n_targets == kSources) {
    T* out[kSources];
    for (int t = 0; t < kSources; ++t) out[t] = targets[t];
    TUTTI_INDEPENDENT_ITERATIONS
    for (size_t i = begin; i < end; ++i) {
      const T value = sum(i);
      for (int t = 0; t < kSources; ++t) out[t][i] = value;
    }
    return;
  }
  T* const first = targets[0];
  TUTTI_INDEPENDENT_ITERATIONS
  for (size_t i = begin; i < end; ++i) first[i] = sum(i);
  for (int t = 1; t < n_targets; ++t) memcpy(targets[t] + begin, first + begin, (end - begin) * sizeof(T));
}

template <typename T>
void sum_in_blocks(T* const* targets, int n_targets, const T* const* sources, int n_sources, size_t count) {
  T partial[kBlock];
  for (size_t begin = 0; begin < count; begin += kBlock) {
    const size_t n = smaller(kBlock, count - begin);
    memcpy(partial, sources[0] + begin, n * sizeof(T));
    for (int s = 1; s < n_sources; ++s) {
      const T* const source = sources[s] + begin;
      for (size_t i = 0; i < n; ++i) partial[i] += source[i];
    }
    for (int t = 0; t < n_targets; ++t) memcpy(targets[t] + begin, partial, n * sizeof(T));
  }
}

template <typename T>
void sum_plain(void* const* targets, int n_targets, const void* const* sources, int n_sources, size_t count) {
  const auto out = reinterpret_cast<T* const*>(targets);
  const auto in = reinterpret_cast<const T* const*>(sources);
  switch (n_sources) {
    case 2:
      return sum_in_registers<2>(out, n_targets, in, 0, count);
    case 3:
      return sum_in_registers<3>(out, n_targets, in, 0, count);
    case 4:
      return sum_in_registers<4>(out, n_targets, in, 0, count);
    default:
      return sum_in_blocks(out, n_targets, in, n_sources, count);
  }
}

// ---- bf16 and f16: added in float32, rounded once ----

float float_of(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

uint32_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

struct Bf16 {
  static void load(float* to, const uint16_t* from, size_t n) {
    for (size_t i = 0; i < n; ++i) to[i] = float_of(static_cast<uint32_t>(from[i]) << 16);
  }
  static void add(float* to, const uint16_t* from, size_t n) {
    for (size_t i = 0; i < n; ++i) to[i] += float_of(static_cast<uint32_t>(from[i]) << 16);
  }
  static void store(uint16_t* to, const float* from, size_t n) {
    for (size_t i = 0; i < n; ++i) {
      const uint32_t bits = bits_of(from[i]);
      const uint32_t rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16;
      // Rounding could carry a NaN into infinity or zero: keep its top bits and make it quiet.
      const uint32_t nan = (bits >> 16) | 0x40;
      to[i] = static_cast<uint16_t>((bits & 0x7FFFFFFF) > 0x7F800000 ? nan : rounded);
    }
  }
};

struct F16 {
  static float widen(uint16_t half) {
    const uint32_t sign = (half & 0x8000u) << 16;
    const uint32_t magnitude = half & 0x7FFFu;
    if (magnitude >= 0x7C00) {  // infinity, or a NaN, made quiet as the processor does
      return float_of(sign | 0x7F800000 | ((magnitude & 0x3FF) << 13) | (magnitude > 0x7C00 ? 0x400000 : 0));
    }
    if (magnitude >= 0x400) return float_of(sign | ((magnitude << 13) + ((127u - 15u) << 23)));
    // Subnormal: magnitude · 2⁻²⁴, exact in float32.
    return float_of(sign | bits_of(static_cast<float>(magnitude) * 0x1p-24f));
  }
  static uint16_t narrow(float value) {
    const uint32_t bits = bits_of(value);
    const uint32_t sign = (bits >> 16) & 0x8000;
    const uint32_t magnitude = bits & 0x7FFFFFFF;
    if (magnitude > 0x7F800000) return static_cast<uint16_t>(sign | 0x7E00 | ((magnitude >> 13) & 0x3FF));
    if (magnitude >= 0x477FF000) return static_cast<uint16_t>(sign | 0x7C00);  // from 65520 on rounds to infinity
    if (magnitude >= 0x38800000) {
      const uint32_t rebased = magnitude - ((127u - 15u) << 23);
      return static_cast<uint16_t>(sign | ((rebased + 0xFFF + ((rebased >> 13) & 1)) >> 13));
    }
    // Subnormal result: adding ½ lets the float adder round at 2⁻²⁴, to nearest even.
    return static_cast<uint16_t>(sign | (bits_of(float_of(magnitude) + 0.5f) - 0x3F000000));
  }

  static void load(float* to, const uint16_t* from, size_t n) {
    size_t i = 0;
#ifdef __F16C__
    for (; i + 8 <= n; i += 8) _mm256_storeu_ps(to + i, widen8(from + i));
#endif
    for (; i < n; ++i) to[i] = widen(from[i]);
  }
  static void add(float* to, const uint16_t* from, size_t n) {
    size_t i = 0;
#ifdef __F16C__
    for (; i + 8 <= n; i += 8) _mm256_storeu_ps(to + i, _mm256_add_ps(_mm256_loadu_ps(to + i), widen8(from + i)));
#endif
    for (; i < n; ++i) to[i] += widen(from[i]);
  }
  static void store(uint16_t* to, const float* from, size_t n) {
    size_t i = 0;
#ifdef __F16C__
    for (; i + 8 <= n; i += 8) {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i),
                       _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
    }
#endif
    for (; i < n; ++i) to[i] = narrow(from[i]);
  }

 private:
#ifdef __F16C__
  static __m256 widen8(const uint16_t* from) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
  }
#endif
};

template <typename Half>
void sum_halves(void* const* targets, int n_targets, const void* const* sources, int n_sources, size_t count) {
  float partial[kBlock];
  uint16_t rounded[kBlock];
  for (size_t begin = 0; begin < count; begin += kBlock) {
    const size_t n = smaller(kBlock, count - begin);
    Half::load(partial, static_cast<const uint16_t*>(sources[0]) + begin, n);
    for (int s = 1; s < n_sources; ++s) Half::add(partial, static_cast<const uint16_t*>(sources[s]) + begin, n);
    Half::store(rounded, partial, n);
    for (int t = 0; t < n_targets; ++t) {
      memcpy(static_cast<uint16_t*>(targets[t]) + begin, rounded, n * sizeof(uint16_t));
    }
  }
}

#define TUTTI_TEXT_(x) #x
#define TUTTI_TEXT(x) TUTTI_TEXT_(x)

}  // namespace

extern const SumKernels kSumKernels;
const SumKernels kSumKernels{TUTTI_TEXT(TUTTI_SUM_ISA), sum_plain<float>, sum_halves<Bf16>, sum_halves<F16>,
                             sum_plain<uint64_t>};

}  // namespace tutti::TUTTI_SUM_ISA
