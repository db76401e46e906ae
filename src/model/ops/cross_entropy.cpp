#include "model/ops/cross_entropy.h"

#include "model/ops/gpu.h"
#include "model/ops/linear.h"

namespace tutti {

torch::Tensor linear_cross_entropy(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias,
                                   const torch::Tensor& targets, int64_t ignored) {
  if (gpu::takes_linear(x, weight)) return gpu::linear_cross_entropy(x, weight, bias, targets, ignored);
  // Sum and count, because the mean of nothing is NaN and a batch may have no target.
  const torch::Tensor sum =
      torch::cross_entropy_loss(linear(x, weight, bias), targets, /*weight=*/{}, at::Reduction::Sum, ignored);
  return sum / targets.ne(ignored).sum().clamp_min(1);
}

}  // namespace tutti
