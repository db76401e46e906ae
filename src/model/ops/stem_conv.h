#pragma once

#include <torch/types.h>

namespace tutti {

/// conv2d(images, weight) with 7x7 weights, stride 2 and padding 3, as many networks begin. On a GPU in bfloat16 it is
/// computed as a 4x4 convolution with stride 1, with four pixels' channels taken as one's: kernels for three channels
/// are slow.
torch::Tensor stem_conv(const torch::Tensor& images, const torch::Tensor& weight);

}  // namespace tutti
