// Stands in for the CUDA parts in a build without CUDA.
#include "engine/device_clock.h"
#include "engine/device_link.h"
#include "engine/optimizers/cuda.h"
#include "engine/step_graph.h"
#include "engine/stream_executor.h"
#include "tutti/error.h"

namespace tutti {

namespace {
constexpr const char* kNoCuda = "this build of Tutti has no CUDA: use --device cpu, or rebuild on a machine with a GPU";
}

std::unique_ptr<FlatOptimizer> make_cuda_sgd(const OptimizerOptions&, const torch::Tensor&) { throw Error(kNoCuda); }
std::unique_ptr<FlatOptimizer> make_cuda_adam(const OptimizerOptions&, const torch::Tensor&) { throw Error(kNoCuda); }
std::unique_ptr<FlatOptimizer> make_cuda_adamw(const OptimizerOptions&, const torch::Tensor&) { throw Error(kNoCuda); }
std::unique_ptr<FlatOptimizer> make_cuda_lamb(const OptimizerOptions&, const torch::Tensor&) { throw Error(kNoCuda); }
std::unique_ptr<StepGraph> record_graph(const std::function<void()>&) { throw Error(kNoCuda); }
std::unique_ptr<StreamExecutor> make_stream_executor(
    const Plan&, Communicator&, DeviceLink&, Wire&,
    std::function<void(const UpdatePiece&)>) {  // NOLINT: moved with CUDA
  throw Error(kNoCuda);
}
std::unique_ptr<DeviceLink> make_cuda_link(const FlatSpace&, Communicator&) { throw Error(kNoCuda); }
std::unique_ptr<DeviceClock> make_cuda_clock() { throw Error(kNoCuda); }

}  // namespace tutti
