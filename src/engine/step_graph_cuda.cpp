#include <ATen/cuda/CUDAEvent.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>
#include <torch/cuda.h>
#include <torch/types.h>

#include <array>

#include "engine/step_graph.h"
#include "tutti/error.h"

namespace tutti {
namespace {

/// Lets other threads allocate and pin memory meanwhile; what this one may not do while recording throws.
constexpr cudaStreamCaptureMode kMode = cudaStreamCaptureModeThreadLocal;

class CudaStepGraph : public StepGraph {
 public:
  explicit CudaStepGraph(const std::function<void()>& work) : pool_(at::cuda::graph_pool_handle()) {
    graph_.capture_begin(pool_, kMode);
    try {
      work();
    } catch (...) {
      abandon();
      throw;
    }
    try {
      graph_.capture_end();
    } catch (...) {
      clean_up();
      throw;
    }
  }
  void replay() override {
    graph_.replay();
    ends_[replays_++ % ends_.size()].record();
  }
  void keep_pace() override {
    if (replays_ >= ends_.size()) ends_[replays_ % ends_.size()].synchronize();
  }

 private:
  void abandon() noexcept {
    try {
      graph_.capture_end();
      graph_.reset();
      reset_generator();
    } catch (...) {
      clean_up();
    }
  }

  /// Recording was interrupted by the driver, and capture_end() stopped before it gave back what capture_begin() took.
  void clean_up() noexcept {
    try {
      (void)cudaGetLastError();
      const c10::DeviceIndex device = c10::cuda::getCurrentCUDAStream().device_index();
      c10::cuda::CUDACachingAllocator::endAllocateToPool(device, pool_);
      c10::cuda::CUDACachingAllocator::releasePool(device, pool_);
      reset_generator();
    } catch (...) {  // NOLINT(bugprone-empty-catch): the error that led here says more
    }
  }

  /// torch's generator thinks that it is being recorded until a recording ends well.
  static void reset_generator() {
    at::cuda::CUDAGraph nothing;
    nothing.capture_begin(at::cuda::graph_pool_handle(), kMode);
    const torch::Tensor one = torch::zeros({1}, torch::kCUDA);
    nothing.capture_end();
  }

  const at::cuda::MempoolId_t pool_;
  at::cuda::CUDAGraph graph_;
  std::array<at::cuda::CUDAEvent, 3> ends_;  // of the last repetitions, in a ring
  std::size_t replays_ = 0;
};

}  // namespace

std::unique_ptr<StepGraph> record_graph(const std::function<void()>& work) {
  const c10::cuda::CUDAStream stream = c10::cuda::getCurrentCUDAStream();
  if (stream == c10::cuda::getDefaultCUDAStream(stream.device_index()))
    throw Error("a step on the default stream cannot be recorded: make a ComputeStream first");
  // The graph gets memory of its own. What earlier runs of the work have left in the allocator is as much again.
  torch::cuda::synchronize();
  c10::cuda::CUDACachingAllocator::emptyCache();
  try {
    return std::make_unique<CudaStepGraph>(work);
  } catch (const c10::Error& error) {
    throw Error("{}", error.what_without_backtrace());
  }
}

}  // namespace tutti
