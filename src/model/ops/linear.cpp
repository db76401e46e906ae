#include "model/ops/linear.h"

#include <ATen/Context.h>

#include "model/ops/plain.h"

namespace tutti {

torch::Tensor linear(const torch::Tensor& input, const torch::Tensor& weight, const torch::Tensor& bias) {
  const bool is_faster = input.device().is_cpu() && input.scalar_type() == torch::kFloat && input.size(0) > 0 &&
                         !PlainOperations::is_on() && !at::hasMKL() && at::globalContext().userEnabledMkldnn() &&
                         at::hasMKLDNN();
  if (!is_faster) return torch::linear(input, weight, bias);
  return at::mkldnn_linear(input.to_mkldnn(), weight, bias).to_dense();
}

}  // namespace tutti
