#pragma once

#include <torch/nn/modules/batchnorm.h>
#include <torch/types.h>

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

}  // namespace tutti
