#pragma once

// Several neighbouring elements, moved at once. For kernels alone.

#include <cuda_bf16.h>

#include <cstdint>

namespace tutti {

/// `count` elements of type T in as few registers as possible.
template <typename T, int count>
struct Pack;

template <>
struct alignas(16) Pack<__nv_bfloat16, 8> {
  uint32_t pairs[4];

  __device__ void unpack(float (&to)[8]) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      to[2 * i] = __uint_as_float(pairs[i] << 16);
      to[2 * i + 1] = __uint_as_float(pairs[i] & 0xffff0000U);
    }
  }
  __device__ static Pack of(const float (&from)[8]) {
    Pack pack;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const __nv_bfloat162 pair = __floats2bfloat162_rn(from[2 * i], from[2 * i + 1]);
      pack.pairs[i] = *reinterpret_cast<const uint32_t*>(&pair);
    }
    return pack;
  }
};

template <>
struct Pack<__nv_bfloat16, 1> {
  __nv_bfloat16 value;

  __device__ void unpack(float (&to)[1]) const { to[0] = __bfloat162float(value); }
  __device__ static Pack of(const float (&from)[1]) { return {__float2bfloat16_rn(from[0])}; }
};

template <>
struct alignas(16) Pack<float, 8> {
  float4 low, high;

  __device__ void unpack(float (&to)[8]) const {
    to[0] = low.x, to[1] = low.y, to[2] = low.z, to[3] = low.w;
    to[4] = high.x, to[5] = high.y, to[6] = high.z, to[7] = high.w;
  }
  __device__ static Pack of(const float (&from)[8]) {
    return {{from[0], from[1], from[2], from[3]}, {from[4], from[5], from[6], from[7]}};
  }
};

template <>
struct Pack<float, 1> {
  float value;

  __device__ void unpack(float (&to)[1]) const { to[0] = value; }
  __device__ static Pack of(const float (&from)[1]) { return {from[0]}; }
};

}  // namespace tutti
