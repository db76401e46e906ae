#include "model/ops/add_norm.h"

#include "model/ops/bias_activation.h"
#include "model/ops/dropout.h"
#include "model/ops/gpu.h"

namespace tutti {
namespace {

/// x weightᵀ, for a bias that comes later.
gpu::LinearResult product(const torch::Tensor& x, const torch::Tensor& weight) {
  if (gpu::takes_linear(x, weight)) return gpu::linear(x, {weight}, {});
  return {torch::linear(x, weight), x};
}

torch::Tensor add_norm_on_gpu(const torch::Tensor& x, const Dense& dense, const torch::Tensor& residual,
                              double dropout_share, const LayerNorm& norm) {
  return gpu::add_norm(product(x, dense.weight).y, dense.bias, residual, dropout_share, norm.weight, norm.bias,
                       norm.epsilon);
}

}  // namespace

torch::Tensor add_norm(const torch::Tensor& x, const Dense& dense, const torch::Tensor& residual, double dropout_share,
                       const LayerNorm& norm) {
  if (gpu::takes_rows(residual, norm.weight) && gpu::takes(x, dense.bias))
    return add_norm_on_gpu(x, dense, residual, dropout_share, norm);
  const torch::Tensor y = dense(x);
  return norm(residual + (dropout_share > 0 ? dropout(y, dropout_share) : y));
}

torch::Tensor gelu_feed_forward(const torch::Tensor& x, const Dense& inner, const Dense& outer, double dropout_share,
                                const LayerNorm& norm) {
  if (!gpu::takes_rows(x, norm.weight)) return add_norm(dense_gelu(x, inner), outer, x, dropout_share, norm);
  const gpu::LinearResult in = product(x, inner.weight);
  return add_norm_on_gpu(gpu::bias_gelu(in.y, inner.bias), outer, in.x, dropout_share, norm);
}

torch::Tensor relu_feed_forward(const torch::Tensor& x, const Dense& inner, const Dense& outer, double dropout_share,
                                const LayerNorm& norm) {
  if (!gpu::takes_rows(x, norm.weight))
    return add_norm(dense_relu(x, inner, dropout_share), outer, x, dropout_share, norm);
  const gpu::LinearResult in = product(x, inner.weight);
  return add_norm_on_gpu(gpu::bias_relu(in.y, inner.bias, dropout_share), outer, in.x, dropout_share, norm);
}

torch::Tensor normalize(const torch::Tensor& x, const LayerNorm& norm) {
  if (!gpu::takes_rows(x, norm.weight)) return norm(x);
  return gpu::add_norm({}, {}, x, 0, norm.weight, norm.bias, norm.epsilon);
}

}  // namespace tutti
