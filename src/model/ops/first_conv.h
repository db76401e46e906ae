#pragma once

#include <torch/types.h>

namespace tutti {

/// relu(conv2d(images, weight, bias)) for the first layer of a network: 3×3, no padding, no gradient for the images.
/// On a CPU, with one input channel and a multiple of 32 output channels, in one pass with its result channels-last;
/// otherwise torch's own operations.
torch::Tensor first_conv3x3_relu(const torch::Tensor& images, const torch::Tensor& weight, const torch::Tensor& bias);

}  // namespace tutti
