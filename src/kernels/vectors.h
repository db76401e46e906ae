#pragma once

// Device code, for .cu files: elements of memory as floats in registers, one by one or eight at once.

#include <cuda_bf16.h>

#include <cstdint>

#include "kernels/element_type.h"

namespace tutti {

/// Elements that a thread moves at once where all is aligned: 16 bytes of bf16.
constexpr int kVector = 8;

/// Elements as they lie in memory: of bf16 in half the registers that their values need.
template <typename T, int kCount>
struct Packed {
  T value;
};
template <>
struct Packed<float, kVector> {
  float4 low, high;
};
template <>
struct Packed<__nv_bfloat16, kVector> {
  uint4 bits;
};

template <typename T, int kCount>
__device__ inline void fetch(const T* from, Packed<T, kCount>& to) {
  to = *reinterpret_cast<const Packed<T, kCount>*>(from);
}

template <typename T, int kCount>
__device__ inline void unpack(const Packed<T, kCount>& from, float (&to)[kCount]) {
  if constexpr (kCount == 1) {
    to[0] = static_cast<float>(from.value);
  } else if constexpr (sizeof(T) == sizeof(float)) {
    to[0] = from.low.x, to[1] = from.low.y, to[2] = from.low.z, to[3] = from.low.w;
    to[4] = from.high.x, to[5] = from.high.y, to[6] = from.high.z, to[7] = from.high.w;
  } else {
    const uint32_t words[4] = {from.bits.x, from.bits.y, from.bits.z, from.bits.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      // A bf16 is the upper half of a float.
      to[2 * i] = __uint_as_float(words[i] << 16);
      to[2 * i + 1] = __uint_as_float(words[i] & 0xFFFF0000U);
    }
  }
}

template <typename T, int kCount>
__device__ inline void load(const T* from, float (&to)[kCount]) {
  Packed<T, kCount> packed;
  fetch(from, packed);
  unpack(packed, to);
}

__device__ inline void store(float* to, const float (&from)[1]) { *to = from[0]; }
__device__ inline void store(__nv_bfloat16* to, const float (&from)[1]) { *to = __float2bfloat16_rn(from[0]); }
__device__ inline void store(float* to, const float (&from)[kVector]) {
  reinterpret_cast<float4*>(to)[0] = make_float4(from[0], from[1], from[2], from[3]);
  reinterpret_cast<float4*>(to)[1] = make_float4(from[4], from[5], from[6], from[7]);
}
__device__ inline void store(__nv_bfloat16* to, const float (&from)[kVector]) {
  uint32_t words[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(from[2 * i], from[2 * i + 1]);
    words[i] = *reinterpret_cast<const uint32_t*>(&pair);
  }
  *reinterpret_cast<uint4*>(to) = make_uint4(words[0], words[1], words[2], words[3]);
}

/// Rows of `width` elements from here on can be moved by vectors.
inline bool takes_vectors(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer) % 16 == 0; }

/// Calls `run` with a value of the type that elements have: run(float{}), run(__nv_bfloat16{}).
template <typename Run>
auto for_type(ElementType type, const Run& run) {
  return type == ElementType::bf16 ? run(__nv_bfloat16{}) : run(float{});
}

}  // namespace tutti
