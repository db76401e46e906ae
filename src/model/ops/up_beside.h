#pragma once

#include <torch/types.h>

namespace tutti {

/// `across` beside what a transposed convolution with stride 2 makes of `below`, channel-wise: cat({across, …}, 1).
/// What comes out smaller than `across` is padded with zeros to its size.
torch::Tensor up_beside(const torch::Tensor& across, const torch::Tensor& below, const torch::Tensor& weight,
                        const torch::Tensor& bias);

}  // namespace tutti
