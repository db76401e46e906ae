#include "model/ops/linear.h"

#include <ATen/Context.h>

#include "model/ops/gpu.h"
#include "model/ops/plain.h"

namespace tutti {

torch::Tensor linear(const torch::Tensor& input, const torch::Tensor& weight, const torch::Tensor& bias) {
  if (gpu::takes_linear(input, weight)) return gpu::linear(input, {weight}, {bias}).y;
  const bool is_faster = input.device().is_cpu() && input.scalar_type() == torch::kFloat && input.size(0) > 0 &&
                         !PlainOperations::is_on() && !at::hasMKL() && at::globalContext().userEnabledMkldnn() &&
                         at::hasMKLDNN();
  if (!is_faster) return torch::linear(input, weight, bias);
  return at::mkldnn_linear(input.to_mkldnn(), weight, bias).to_dense();
}

Projections projections(const torch::Tensor& input, const std::vector<torch::Tensor>& weights,
                        const std::vector<torch::Tensor>& biases) {
  if (gpu::takes_linear(input, weights[0])) {
    const gpu::LinearResult result = gpu::linear(input, weights, biases);
    std::vector<int64_t> sizes;
    sizes.reserve(weights.size());
    for (const torch::Tensor& weight : weights) sizes.push_back(weight.size(0));
    if (sizes.size() == 1) return {{result.y}, result.x};
    return {result.y.split_with_sizes(sizes, -1), result.x};
  }
  Projections all{{}, input};
  for (std::size_t i = 0; i < weights.size(); ++i) all.outputs.push_back(linear(input, weights[i], biases[i]));
  return all;
}

}  // namespace tutti
