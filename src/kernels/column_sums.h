#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace tutti {

/// sums[c] = the sum of partial[0..rows)[c], always in the same order: the second half of sums over rows that blocks
/// began. One kernel.
cudaError_t add_partial_sums(const float* partial, int64_t rows, int64_t columns, float* sums, cudaStream_t stream);

}  // namespace tutti
