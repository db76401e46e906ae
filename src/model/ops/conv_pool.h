#pragma once

#include <torch/types.h>

namespace tutti {

/// max_pool2d(relu(conv2d(input, weight, bias)), 2) with a 3×3 kernel and no padding.
/// On a CPU, with a multiple of 32 input and of 64 output channels, in one pass (see conv_pool.cpp); the result is then
/// contiguous, the input best channels-last. Otherwise torch's own operations.
torch::Tensor conv3x3_relu_pool2(const torch::Tensor& input, const torch::Tensor& weight, const torch::Tensor& bias);

}  // namespace tutti
