#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/dropout.h"
#include "kernels/element_type.h"

namespace tutti {

/// out = norm(residual + dropout(x + bias)), row by row; all in device memory, rows one after the other.
struct AddNormRun {
  ElementType type = ElementType::fp32;
  int64_t rows = 0, width = 0;
  const void* x = nullptr;      // null: nothing is added to the residual
  const float* bias = nullptr;  // of x, [width]; may be null
  const void* residual = nullptr;
  const float* weight = nullptr;  // of the norm, [width]
  const float* shift = nullptr;   // of the norm, [width]
  float epsilon = 0;
  DropoutRun dropout;
  float* mean = nullptr;  // [rows], which forward writes and backward reads, as the next
  float* inverse_deviation = nullptr;
};

/// Whether a row fits the registers of a block's threads; others are for somebody else.
bool add_norm_takes(int64_t width);

/// Whether forward, with these pointers, writes run.dropout.kept, [rows × width / 8]. If not, that has to be null.
bool add_norm_keeps_bits(const AddNormRun& run, const void* out);

/// Writes `out`, and of `run` the mean, the deviation and what dropout leaves for backward. One kernel.
cudaError_t add_norm_forward(const AddNormRun& run, void* out, cudaStream_t stream);

/// What backward writes. Sums over rows come from memory to work with, in an order that does not change.
struct AddNormGradients {
  void* x = nullptr;  // null: not wanted, or the same as the residual's since nothing is dropped
  void* residual = nullptr;
  float* sums = nullptr;     // [3, width]: of weight, shift and bias
  float* partial = nullptr;  // [add_norm_partial_rows(run), 3, width]
};
/// By the shape and the GPU alone.
cudaError_t add_norm_partial_rows(const AddNormRun& run, int64_t& rows);

/// `gradient` is that of `out`. Two kernels.
cudaError_t add_norm_backward(const AddNormRun& run, const void* gradient, const AddNormGradients& gradients,
                              cudaStream_t stream);

}  // namespace tutti
