#pragma once

#include <torch/types.h>

namespace tutti {

/// torch::max_pool2d. On a GPU, on channels-last images and for the usual windows (2 every 2, and 3 every 2 padded by
/// 1), by kernels that note each winner in a byte and gather gradients, always in the same order.
torch::Tensor max_pool(const torch::Tensor& x, int64_t window, int64_t stride, int64_t padding = 0);

}  // namespace tutti
