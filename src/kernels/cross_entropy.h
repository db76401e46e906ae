#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/element_type.h"

namespace tutti {

/// Rows of scores, of which each has one right class; all in device memory.
struct CrossEntropyRun {
  ElementType type = ElementType::fp32;
  int64_t rows = 0, classes = 0;
  int64_t stride = 0;  // elements from one row to the next; what lies between is not read
  const void* scores = nullptr;
  const int64_t* targets = nullptr;
  int64_t ignored = -100;     // a target that makes a row count for nothing
  float* log_sums = nullptr;  // [rows], which forward writes and backward reads, as the next
  float* mean = nullptr;      // [2]: the mean loss, 0 of no rows, and one over the number of rows that count
};

/// Writes run.log_sums and run.mean; `losses` [rows] is memory to work with. A target that is no class makes the loss
/// NaN. Two kernels.
cudaError_t cross_entropy_forward(const CrossEntropyRun& run, float* losses, cudaStream_t stream);

/// Writes the gradient of the scores, in rows with the same stride and zeros between them. `gradient` is that of
/// run.mean[0], one number. One kernel.
cudaError_t cross_entropy_backward(const CrossEntropyRun& run, const float* gradient, void* of_scores,
                                   cudaStream_t stream);

}  // namespace tutti
