#pragma once

#include <torch/types.h>

namespace tutti {

/// torch::dropout in training. On a CPU the kept elements follow from a hash of the position and of one number drawn
/// from torch's generator, about ten times as fast as torch's own Bernoulli draws, and nothing is stored for backward.
/// The random choices differ from torch's; torch::manual_seed governs them all the same.
torch::Tensor dropout(const torch::Tensor& input, double probability);

}  // namespace tutti
