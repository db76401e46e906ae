#include "model/ops/batch_norm.h"

#include <ATen/Context.h>

#include "model/ops/announce.h"
#include "model/ops/batch_norm_fused.h"
#include "model/ops/checkpoint.h"
#include "model/ops/plain.h"

namespace tutti {
namespace {

torch::Tensor normalize(const torch::Tensor& x, const torch::nn::BatchNorm2d& norm, const torch::Tensor& residual,
                        bool has_relu) {
  const bool of_batch = norm->is_training() && x.numel() > x.size(1);
  const bool keeps_average = !(of_batch && is_second_run());
  const torch::Tensor running_mean = keeps_average ? norm->running_mean : torch::Tensor();
  const torch::Tensor running_var = keeps_average ? norm->running_var : torch::Tensor();
  const double momentum = norm->options.momentum().value(), epsilon = norm->options.eps();
  if (of_batch && !PlainOperations::is_on()) {
    const FusedNorm fused{norm->weight, norm->bias, running_mean, running_var, residual, momentum, epsilon, has_relu};
    if (can_fuse(x, fused)) {
      TUTTI_ANNOUNCE_OPERATOR("tutti::batch_norm", x, norm->weight, norm->bias);
      return fused_batch_norm(x, fused);
    }
  }
  torch::Tensor y = torch::batch_norm(x, norm->weight, norm->bias, running_mean, running_var, of_batch, momentum,
                                      epsilon, at::globalContext().userEnabledCuDNN());
  if (residual.defined()) y = y.add_(residual);
  return has_relu ? y.relu_() : y;
}

}  // namespace

torch::Tensor batch_norm(const torch::Tensor& x, const torch::nn::BatchNorm2d& norm) {
  return normalize(x, norm, {}, false);
}

torch::Tensor batch_norm_relu(const torch::Tensor& x, const torch::nn::BatchNorm2d& norm) {
  return normalize(x, norm, {}, true);
}

torch::Tensor batch_norm_add_relu(const torch::Tensor& x, const torch::nn::BatchNorm2d& norm,
                                  const torch::Tensor& residual) {
  return normalize(x, norm, residual, true);
}

}  // namespace tutti
