#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include "base/error.h"
#include "engine/device_link.h"

namespace tutti {
namespace {

void check(cudaError_t status, const char* what) {
  if (status != cudaSuccess) throw Error("CUDA: {} failed: {}", what, cudaGetErrorString(status));
}

class CudaLink : public DeviceLink {
 public:
  CudaLink(const FlatSpace& space, Communicator& comm)
      : device_(space.gradients().device()),
        gradients_(space.gradients().data_ptr<float>()),
        gradient_there_(space.slots().size()),
        copy_stream_(at::cuda::getStreamFromPool(/*isHighPriority=*/true, device_.index())) {
    if (comm.size() == 1) return;
    const std::size_t bytes = static_cast<std::size_t>(space.elements()) * sizeof(float);
    staging_ = static_cast<float*>(comm.allocate(bytes));
    check(cudaHostRegister(staging_, bytes, cudaHostRegisterDefault), "pinning the staging memory");
  }
  ~CudaLink() override {
    if (staging_ != nullptr) cudaHostUnregister(staging_);
  }

  void gradient_queued(std::size_t slot) override { gradient_there_[slot].record(); }
  void backward_queued() override { backward_done_.record(); }
  void wait_for_backward() override { backward_done_.synchronize(); }
  void join() override { delivered_.block(at::cuda::getCurrentCUDAStream(device_.index())); }

  Span fetch(const Transfer& transfer, std::size_t first_slot, std::size_t last_slot, bool after_backward) override {
    const c10::cuda::CUDAGuard guard(device_);
    if (after_backward) {
      backward_done_.block(copy_stream_);
    } else {
      for (std::size_t slot = first_slot; slot <= last_slot; ++slot) gradient_there_[slot].block(copy_stream_);
    }
    const std::size_t bytes = static_cast<std::size_t>(transfer.elements()) * sizeof(float);
    check(cudaMemcpyAsync(staging_ + transfer.begin, gradients_ + transfer.begin, bytes, cudaMemcpyDeviceToHost, copy_stream_),
          "copying gradients to the host");
    check(cudaStreamSynchronize(copy_stream_), "copying gradients to the host");
    return {staging_ + transfer.begin, static_cast<std::size_t>(transfer.elements()), DataType::f32};
  }

  void deliver(const Transfer& transfer) override {
    const c10::cuda::CUDAGuard guard(device_);
    const std::size_t bytes = static_cast<std::size_t>(transfer.elements()) * sizeof(float);
    check(cudaMemcpyAsync(gradients_ + transfer.begin, staging_ + transfer.begin, bytes, cudaMemcpyHostToDevice, copy_stream_),
          "copying gradients to the device");
    delivered_.record(copy_stream_);
  }

  std::size_t mark() override {
    marks_.emplace_back(cudaEventDefault);
    marks_.back().record();
    return marks_.size() - 1;
  }
  double seconds_between(std::size_t from, std::size_t to) override {
    marks_[to].synchronize();
    return marks_[from].elapsed_time(marks_[to]) * 1e-3;
  }
  void forget_marks() override { marks_.clear(); }

 private:
  torch::Device device_;
  float* gradients_;
  float* staging_ = nullptr;  // the communicator's; one place for each element, so that slices can travel in any order
  std::vector<at::cuda::CUDAEvent> gradient_there_;
  at::cuda::CUDAEvent backward_done_, delivered_;
  at::cuda::CUDAStream copy_stream_;
  std::vector<at::cuda::CUDAEvent> marks_;
};

}  // namespace

std::unique_ptr<DeviceLink> make_cuda_link(const FlatSpace& space, Communicator& comm) {
  return std::make_unique<CudaLink>(space, comm);
}

}  // namespace tutti
