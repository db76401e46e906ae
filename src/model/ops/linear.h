#pragma once

#include <torch/types.h>

namespace tutti {

/// torch::linear. On a CPU whose torch was built without MKL, by way of oneDNN: Debian's torch multiplies through
/// OpenBLAS, which takes processors newer than itself for ones without AVX and is then eight times slower.
torch::Tensor linear(const torch::Tensor& input, const torch::Tensor& weight, const torch::Tensor& bias);

}  // namespace tutti
