#pragma once

#include "engine/optimizer.h"

namespace tutti {

/// In torch's operations: for GPUs. It runs anywhere.
std::unique_ptr<FlatOptimizer> make_lamb_of_operations(const OptimizerOptions& options, const torch::Tensor& like);

}  // namespace tutti
