#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>

namespace tutti {

constexpr int kThreads = 256;

/// Blocks for `count` pieces of work, one per thread: as many as run at the same time at most, so that kernels loop.
inline cudaError_t count_blocks(int64_t count, int blocks_per_processor, int& blocks) {
  int device = 0, processors = 0;
  cudaError_t status = cudaGetDevice(&device);
  if (status == cudaSuccess) status = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
  if (status != cudaSuccess) return status;
  const int64_t wanted = (count + kThreads - 1) / kThreads;
  blocks =
      static_cast<int>(std::max<int64_t>(1, std::min<int64_t>(wanted, int64_t{processors} * blocks_per_processor)));
  return cudaSuccess;
}

}  // namespace tutti
