#pragma once

#include "engine/optimizer.h"

namespace tutti {

// Tutti's own kernels, where the build has CUDA.
std::unique_ptr<FlatOptimizer> make_cuda_sgd(const OptimizerOptions& options, const torch::Tensor& like);
std::unique_ptr<FlatOptimizer> make_cuda_adam(const OptimizerOptions& options, const torch::Tensor& like);
std::unique_ptr<FlatOptimizer> make_cuda_adamw(const OptimizerOptions& options, const torch::Tensor& like);
std::unique_ptr<FlatOptimizer> make_cuda_lamb(const OptimizerOptions& options, const torch::Tensor& like);

}  // namespace tutti
