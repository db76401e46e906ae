// Stands in for the CUDA parts in a build without CUDA.
#include "engine/device_link.h"
#include "engine/optimizers/cuda.h"
#include "tutti/error.h"

namespace tutti {

namespace {
constexpr const char* kNoCuda = "this build of Tutti has no CUDA: use --device cpu, or rebuild on a machine with a GPU";
}

std::unique_ptr<FlatOptimizer> make_cuda_sgd(const OptimizerOptions&, const torch::Tensor&) { throw Error(kNoCuda); }
std::unique_ptr<FlatOptimizer> make_cuda_adam(const OptimizerOptions&, const torch::Tensor&) { throw Error(kNoCuda); }
std::unique_ptr<FlatOptimizer> make_cuda_adamw(const OptimizerOptions&, const torch::Tensor&) { throw Error(kNoCuda); }
std::unique_ptr<DeviceLink> make_cuda_link(const FlatSpace&, Communicator&) { throw Error(kNoCuda); }

}  // namespace tutti
