#include "model/ops/up_beside.h"

#include "model/ops/announce.h"
#include "model/ops/image_kernels.h"

namespace tutti {

torch::Tensor up_beside(const torch::Tensor& across, const torch::Tensor& below, const torch::Tensor& weight,
                        const torch::Tensor& bias) {
  constexpr int64_t kStride = 2;
  const bool fits = across.size(2) == kStride * below.size(2) && across.size(3) == kStride * below.size(3);
  if (fits && can_join_fused(across, below, bias)) {
    const torch::Tensor x = torch::conv_transpose2d(below, weight, {}, kStride);
    TUTTI_ANNOUNCE_OPERATOR("tutti::join", across, x, bias);
    return fused_join(across, x, bias);
  }
  torch::Tensor x = torch::conv_transpose2d(below, weight, bias, kStride);
  const int64_t rows = across.size(2) - x.size(2), columns = across.size(3) - x.size(3);
  if (rows != 0 || columns != 0)  // pooling left out the last row or column
    x = torch::constant_pad_nd(x, {columns / 2, columns - columns / 2, rows / 2, rows - rows / 2});
  return torch::cat({across, x}, 1);
}

}  // namespace tutti
