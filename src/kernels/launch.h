#pragma once

#include <cuda_runtime.h>

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

/// Queues a kernel that may be started while the one before it in the stream still runs, where the GPU can do that
/// (from Hopper on): it calls wait_for_kernel_before() first, the other one let_next_kernel_start(). Then the start of
/// one hides behind the end of the other.
template <typename... Parameters, typename... Arguments>
cudaError_t launch_behind(void (*kernel)(Parameters...), dim3 grid, int threads, cudaStream_t stream,
                          const Arguments&... arguments) {
  int device = 0, major = 0;
  cudaError_t status = cudaGetDevice(&device);
  if (status == cudaSuccess) status = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  if (status != cudaSuccess) return status;
  cudaLaunchAttribute overlap = {};
  overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlap.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.stream = stream;
  config.attrs = &overlap;
  config.numAttrs = major >= 9 ? 1 : 0;
  return cudaLaunchKernelEx(&config, kernel, arguments...);
}

#ifdef __CUDACC__
/// See launch_behind(). What the kernel before has written can be read from here on.
__device__ inline void wait_for_kernel_before() {
#if __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
#endif
}

__device__ inline void let_next_kernel_start() {
#if __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
#endif
}
#endif

/// Blocks of `kernel` for `wanted` pieces of work, one per block: as many as the GPU holds at the same time, and at
/// most `most_per_processor` times its processors, so that kernels loop and end together.
template <typename Kernel>
cudaError_t count_resident_blocks(Kernel kernel, int threads, int most_per_processor, int64_t wanted, int& blocks) {
  int device = 0, processors = 0, resident = 0;
  cudaError_t status = cudaGetDevice(&device);
  if (status == cudaSuccess) status = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
  if (status == cudaSuccess) status = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, threads, 0);
  const int64_t most = int64_t{processors} * std::min(resident, most_per_processor);
  blocks = static_cast<int>(std::max<int64_t>(1, std::min(wanted, most)));
  return status;
}

}  // namespace tutti
