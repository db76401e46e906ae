// A build without CUDA.

#include "model/ops/gpu.h"

namespace tutti::gpu {

bool takes(const torch::Tensor&, const torch::Tensor&) { return false; }

bool takes_rows(const torch::Tensor&, const torch::Tensor&) { return false; }

torch::Tensor add_norm(const torch::Tensor&, const torch::Tensor&, const torch::Tensor&, double, const torch::Tensor&,
                       const torch::Tensor&, double) {
  return {};
}

bool takes_linear(const torch::Tensor&, const torch::Tensor&) { return false; }

LinearResult linear(const torch::Tensor&, const std::vector<torch::Tensor>&, const std::vector<torch::Tensor>&) {
  return {};
}

torch::Tensor linear_cross_entropy(const torch::Tensor&, const torch::Tensor&, const torch::Tensor&,
                                   const torch::Tensor&, int64_t) {
  return {};
}

torch::Tensor bias_gelu(const torch::Tensor&, const torch::Tensor&) { return {}; }

torch::Tensor bias_relu(const torch::Tensor&, const torch::Tensor&, double) { return {}; }

}  // namespace tutti::gpu
