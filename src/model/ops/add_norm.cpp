#include "model/ops/add_norm.h"

#include "model/ops/dropout.h"
#include "model/ops/gpu.h"

namespace tutti {

torch::Tensor add_norm(const torch::Tensor& x, const Dense& dense, const torch::Tensor& residual, double dropout_share,
                       const LayerNorm& norm) {
  if (gpu::takes_rows(residual, norm.weight) && gpu::takes(x, dense.bias)) {
    return gpu::add_norm(torch::linear(x, dense.weight), dense.bias, residual, dropout_share, norm.weight, norm.bias,
                         norm.epsilon);
  }
  const torch::Tensor y = dense(x);
  return norm(residual + (dropout_share > 0 ? dropout(y, dropout_share) : y));
}

torch::Tensor normalize(const torch::Tensor& x, const LayerNorm& norm) {
  if (!gpu::takes_rows(x, norm.weight)) return norm(x);
  return gpu::add_norm({}, {}, x, 0, norm.weight, norm.bias, norm.epsilon);
}

}  // namespace tutti
