#include "model/ops/max_pool.h"

#include "model/ops/announce.h"
#include "model/ops/image_kernels.h"

namespace tutti {

torch::Tensor max_pool(const torch::Tensor& x, int64_t window, int64_t stride, int64_t padding) {
  if (!can_pool_fused(x, window, stride, padding)) return torch::max_pool2d(x, window, stride, padding);
  TUTTI_ANNOUNCE_OPERATOR("tutti::max_pool", x);
  return fused_max_pool(x, window, stride, padding);
}

}  // namespace tutti
