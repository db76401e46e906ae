#pragma once

#include <torch/types.h>

namespace tutti {

/// A batch normalization in training, and what follows it.
struct FusedNorm {
  torch::Tensor weight, bias;
  torch::Tensor running_mean, running_var;  // undefined: not kept
  torch::Tensor residual;                   // to be added; undefined: none
  double momentum = 0.1;
  double epsilon = 1e-5;
  bool has_relu = false;
};

/// Whether there are kernels for it: never in a build without CUDA.
bool can_fuse(const torch::Tensor& x, const FusedNorm& norm);
torch::Tensor fused_batch_norm(const torch::Tensor& x, const FusedNorm& norm);

}  // namespace tutti
