#pragma once

#include <torch/types.h>

#include <vector>

namespace tutti {

// Tutti's own kernels for what stands between the matrix products of a model; for the files of this folder alone, which
// do the same with torch's operations where there is no GPU.
namespace gpu {

/// Whether the functions below take such tensors on this thread now. Not without a GPU, for
/// other types than fp32 and bf16, with a `parameter` that is not fp32, or where a tracer has to see torch's own
/// operations.
bool takes(const torch::Tensor& x, const torch::Tensor& parameter);

/// The same for add_norm(), which takes rows of up to 2048 elements, or 1024 where their number is not a multiple of 8.
bool takes_rows(const torch::Tensor& residual, const torch::Tensor& parameter);

/// layer_norm(residual + dropout(x + bias)) * weight + shift. `x` and `bias` may be undefined. Under autocast all is
/// computed of, and results in, bf16; parameters and arithmetic are fp32.
torch::Tensor add_norm(const torch::Tensor& x, const torch::Tensor& bias, const torch::Tensor& residual,
                       double dropout_share, const torch::Tensor& weight, const torch::Tensor& shift, double epsilon);

/// Whether linear() takes `x` now: under autocast alone.
bool takes_linear(const torch::Tensor& x, const torch::Tensor& parameter);

struct LinearResult {
  torch::Tensor y;
  torch::Tensor x;  // the same as went in; a gradient for this one is added in the matrix product of backward
};
/// x weightᵀ + bias for layers that read the same `x`, their outputs side by side, in one matrix product. Gradients of
/// parameters are fp32 from the start. Without `biases` none is added.
LinearResult linear(const torch::Tensor& x, const std::vector<torch::Tensor>& weights,
                    const std::vector<torch::Tensor>& biases);

/// See model/ops/cross_entropy.h. Where takes_linear().
torch::Tensor linear_cross_entropy(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias,
                                   const torch::Tensor& targets, int64_t ignored);

/// gelu(x + bias)
torch::Tensor bias_gelu(const torch::Tensor& x, const torch::Tensor& bias);

/// dropout(relu(x + bias))
torch::Tensor bias_relu(const torch::Tensor& x, const torch::Tensor& bias, double dropout_share);

}  // namespace gpu
}  // namespace tutti
