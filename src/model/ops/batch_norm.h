#pragma once

#include <torch/nn/modules/batchnorm.h>
#include <torch/types.h>

#include "model/ops/two_uses.h"

namespace tutti {

/// Batch normalization, with the statistics of the batch in training. One value per channel has no spread; it is
/// normalized as in evaluation. Does not count batches: see BatchCounter.
///
/// In training on a GPU, on float or bfloat16 images that lie channels-last, these are two kernels forward and two
/// backward, with what follows included; elsewhere torch's operations.
torch::Tensor batch_norm(const torch::Tensor& x, const torch::nn::BatchNorm2d& norm);
/// relu(batch_norm(x))
torch::Tensor batch_norm_relu(const torch::Tensor& x, const torch::nn::BatchNorm2d& norm);
/// relu(batch_norm(x) + residual)
torch::Tensor batch_norm_add_relu(const torch::Tensor& x, const torch::nn::BatchNorm2d& norm,
                                  const torch::Tensor& residual);

/// The same for a result that is used twice.
TwoUses batch_norm_relu_for_two(const torch::Tensor& x, const torch::nn::BatchNorm2d& norm);
TwoUses batch_norm_add_relu_for_two(const torch::Tensor& x, const torch::nn::BatchNorm2d& norm,
                                    const torch::Tensor& residual);

}  // namespace tutti
