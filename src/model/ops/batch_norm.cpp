#include "model/ops/batch_norm.h"

#include <ATen/Context.h>

#include "model/ops/announce.h"
#include "model/ops/checkpoint.h"
#include "model/ops/image_kernels.h"

namespace tutti {
namespace {

TwoUses normalize(const torch::Tensor& x, const torch::nn::BatchNorm2d& norm, const torch::Tensor& residual,
                  bool has_relu) {
  const bool of_batch = norm->is_training() && x.numel() > x.size(1);
  const bool keeps_average = !(of_batch && is_second_run());
  const torch::Tensor running_mean = keeps_average ? norm->running_mean : torch::Tensor();
  const torch::Tensor running_var = keeps_average ? norm->running_var : torch::Tensor();
  const double momentum = norm->options.momentum().value(), epsilon = norm->options.eps();
  if (of_batch) {
    const FusedNorm fused{norm->weight, norm->bias, running_mean, running_var, residual, momentum, epsilon, has_relu};
    if (can_fuse(x, fused)) {
      TUTTI_ANNOUNCE_OPERATOR("tutti::batch_norm", x, norm->weight, norm->bias);
      return fused_batch_norm(x, fused);
    }
  }
  torch::Tensor y = torch::batch_norm(x, norm->weight, norm->bias, running_mean, running_var, of_batch, momentum,
                                      epsilon, at::globalContext().userEnabledCuDNN());
  if (residual.defined()) y = y.add_(residual);
  if (has_relu) y = y.relu_();
  return {y, y};
}

}  // namespace

torch::Tensor batch_norm(const torch::Tensor& x, const torch::nn::BatchNorm2d& norm) {
  return normalize(x, norm, {}, false).first;
}

torch::Tensor batch_norm_relu(const torch::Tensor& x, const torch::nn::BatchNorm2d& norm) {
  return normalize(x, norm, {}, true).first;
}

torch::Tensor batch_norm_add_relu(const torch::Tensor& x, const torch::nn::BatchNorm2d& norm,
                                  const torch::Tensor& residual) {
  return normalize(x, norm, residual, true).first;
}

TwoUses batch_norm_relu_for_two(const torch::Tensor& x, const torch::nn::BatchNorm2d& norm) {
  return normalize(x, norm, {}, true);
}

TwoUses batch_norm_add_relu_for_two(const torch::Tensor& x, const torch::nn::BatchNorm2d& norm,
                                    const torch::Tensor& residual) {
  return normalize(x, norm, residual, true);
}

}  // namespace tutti
