#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tutti/communicator.h"

namespace tutti {

/// A sum over the bits of all parameters and buffers: one bit that differs makes it differ. Cheap, on any device.
int64_t weights_checksum(const torch::nn::Module& model);

/// The ranks whose number is not that of most; all where no number is that of most; none where all are equal.
std::vector<int> odd_ranks(const std::vector<int64_t>& numbers);

/// Throws where ranks do not have the same weights: TrainingFailed on the first odd rank, which names them, and Stopped
/// on the others. `when`: "after step 7"; `advice` goes behind. A collective, when the weights are complete.
void require_same_weights(const torch::nn::Module& model, Communicator& comm, const std::string& when,
                          const std::string& advice);

/// The first tensor of the model that has a number which is infinite or none; "" where all are finite.
std::string find_not_finite(const torch::nn::Module& model);

}  // namespace tutti
