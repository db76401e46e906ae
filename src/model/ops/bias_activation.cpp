#include "model/ops/bias_activation.h"

#include "model/ops/dropout.h"
#include "model/ops/gpu.h"

namespace tutti {
namespace {

torch::Tensor without_bias(const torch::Tensor& x, const Dense& dense) {
  return gpu::takes_linear(x, dense.weight) ? gpu::linear(x, {dense.weight}, {}).y : torch::linear(x, dense.weight);
}

}  // namespace

torch::Tensor dense_gelu(const torch::Tensor& x, const Dense& dense) {
  if (gpu::takes(x, dense.bias)) return gpu::bias_gelu(without_bias(x, dense), dense.bias);
  return torch::gelu(dense(x));
}

torch::Tensor dense_relu(const torch::Tensor& x, const Dense& dense, double dropout_share) {
  if (gpu::takes(x, dense.bias)) return gpu::bias_relu(without_bias(x, dense), dense.bias, dropout_share);
  const torch::Tensor y = torch::relu(dense(x));
  return dropout_share > 0 ? dropout(y, dropout_share) : y;
}

}  // namespace tutti
