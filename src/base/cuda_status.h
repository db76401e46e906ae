#pragma once

#include <cuda_runtime_api.h>

#include "tutti/error.h"

namespace tutti {

/// Throws Error when a call of CUDA's runtime has failed. Only builds for GPUs have what this includes.
inline void check_cuda(cudaError_t status, const char* what) {
  if (status != cudaSuccess) throw Error("CUDA: {} failed: {}", what, cudaGetErrorString(status));
}

}  // namespace tutti
