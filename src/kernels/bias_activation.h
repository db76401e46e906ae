#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/dropout.h"
#include "kernels/element_type.h"

namespace tutti {

/// Rows of `width` elements in device memory, one after the other, and the bias that each of them gets.
struct BiasRun {
  ElementType type = ElementType::fp32;
  int64_t rows = 0, width = 0;
  const float* bias = nullptr;  // [width]
};

/// What backward writes. Sums over rows come from memory to work with, in an order that does not change.
struct BiasGradients {
  void* x = nullptr;
  float* bias = nullptr;
  float* partial = nullptr;  // [bias_partial_rows(run), width]
};
/// By the shape and the GPU alone.
cudaError_t bias_partial_rows(const BiasRun& run, int64_t& rows);

/// out = gelu(x + bias). One kernel.
cudaError_t bias_gelu_forward(const BiasRun& run, const void* x, void* out, cudaStream_t stream);
/// `gradient` is that of `out`. Two kernels.
cudaError_t bias_gelu_backward(const BiasRun& run, const void* x, const void* gradient, const BiasGradients& gradients,
                               cudaStream_t stream);

/// out = dropout(relu(x + bias)); may be written over x. One kernel.
cudaError_t bias_relu_forward(const BiasRun& run, const DropoutRun& dropout, const void* x, void* out,
                              cudaStream_t stream);
/// From `out` alone: what was dropped is 0 there as well. Two kernels.
cudaError_t bias_relu_backward(const BiasRun& run, const DropoutRule& rule, const void* out, const void* gradient,
                               const BiasGradients& gradients, cudaStream_t stream);

/// gradients.bias = the sum of the rows of `gradient`, and nothing else. Two kernels.
cudaError_t bias_gradient(const BiasRun& run, const void* gradient, const BiasGradients& gradients,
                          cudaStream_t stream);

}  // namespace tutti
