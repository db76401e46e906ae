#pragma once

#include <torch/types.h>

namespace tutti {

/// The mean cross entropy of the scores x weightᵀ + bias, over the rows of `x` whose target is not `ignored`; 0 if
/// there are none. On a GPU under autocast scores stay bf16, are read once each way, and rounded up to rows that matrix
/// products are fast at.
torch::Tensor linear_cross_entropy(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias,
                                   const torch::Tensor& targets, int64_t ignored);

}  // namespace tutti
