#pragma once

#include <torch/types.h>

#include "model/ops/two_uses.h"

namespace tutti {

// What there are CUDA kernels for, on images that lie channels-last: never in a build without CUDA, nor while
// PlainOperations are on.

/// A batch normalization in training, and what follows it.
struct FusedNorm {
  torch::Tensor weight, bias;
  torch::Tensor running_mean, running_var;  // undefined: not kept
  torch::Tensor residual;                   // to be added; undefined: none
  double momentum = 0.1;
  double epsilon = 1e-5;
  bool has_relu = false;
};
bool can_fuse(const torch::Tensor& x, const FusedNorm& norm);
TwoUses fused_batch_norm(const torch::Tensor& x, const FusedNorm& norm);

bool can_pool_fused(const torch::Tensor& x, int64_t window, int64_t stride, int64_t padding);
torch::Tensor fused_max_pool(const torch::Tensor& x, int64_t window, int64_t stride, int64_t padding);

/// first beside second + bias, channel-wise, where `second` is made of `source` and has a channel for each of `bias`.
bool can_join_fused(const torch::Tensor& first, const torch::Tensor& source, const torch::Tensor& bias);
torch::Tensor fused_join(const torch::Tensor& first, const torch::Tensor& second, const torch::Tensor& bias);

/// Images for a convolution under bfloat16 autocast, four pixels as one: see FoldPixels.
bool can_fold_pixels(const torch::Tensor& images);
torch::Tensor fold_pixels(const torch::Tensor& images, int64_t margin_before, int64_t margin_after);

}  // namespace tutti
