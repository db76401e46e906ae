#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAGraphsC10Utils.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include "base/cuda_status.h"
#include "engine/device_link.h"

namespace tutti {
namespace {

class CudaLink : public DeviceLink {
 public:
  CudaLink(const FlatSpace& space, Communicator& comm)
      : device_(space.gradients().device()),
        gradients_(space.gradients().data_ptr<float>()),
        values_(space.values().data_ptr<float>()),
        gradient_there_(space.slots().size()),
        takes_device_memory_(comm.device_stream() != nullptr),
        copy_stream_(takes_device_memory_ ? at::cuda::getStreamFromExternal(
                                                static_cast<cudaStream_t>(comm.device_stream()), device_.index())
                                          : at::cuda::getStreamFromPool(/*isHighPriority=*/true, device_.index())) {
    if (comm.size() == 1 || takes_device_memory_) return;
    const std::size_t bytes = static_cast<std::size_t>(space.elements()) * sizeof(float);
    staging_ = static_cast<float*>(comm.allocate(bytes));
    check_cuda(cudaHostRegister(staging_, bytes, cudaHostRegisterDefault), "pinning the staging memory");
  }
  ~CudaLink() override {
    if (staging_ != nullptr) cudaHostUnregister(staging_);
  }

  void gradient_queued(std::size_t slot) override { record(gradient_there_[slot]); }
  void backward_queued() override { record(backward_done_); }
  void wait_for_backward() override { backward_done_.synchronize(); }
  void join() override { delivered_.block(at::cuda::getCurrentCUDAStream(device_.index())); }

  void enter_comm_thread() override {
    c10::cuda::set_device(device_.index());
    at::cuda::setCurrentCUDAStream(copy_stream_);
  }
  void wait_for_gradients(SlotRange slots, bool after_backward) override {
    if (after_backward) {
      backward_done_.block(copy_stream_);
    } else {
      for (std::size_t slot = slots.first; slot < slots.end; ++slot) gradient_there_[slot].block(copy_stream_);
    }
  }
  Span fetch(FlatBuffer buffer, int64_t begin, int64_t end) override {
    const Span span = host(buffer, begin, end);
    if (takes_device_memory_) return span;
    check_cuda(cudaMemcpyAsync(span.data, device(buffer) + begin, span.bytes(), cudaMemcpyDeviceToHost, copy_stream_),
               "copying to the host");
    check_cuda(cudaStreamSynchronize(copy_stream_), "copying to the host");
    return span;
  }
  Span host(FlatBuffer buffer, int64_t begin, int64_t end) override {
    return {(takes_device_memory_ ? device(buffer) : staging_) + begin, static_cast<std::size_t>(end - begin),
            DataType::f32};
  }
  void deliver(FlatBuffer buffer, int64_t begin, int64_t end) override {
    if (takes_device_memory_) return;
    const Span span = host(buffer, begin, end);
    check_cuda(cudaMemcpyAsync(device(buffer) + begin, span.data, span.bytes(), cudaMemcpyHostToDevice, copy_stream_),
               "copying to the device");
  }
  void record_delivered() override { delivered_.record(copy_stream_); }
  bool updates_on_host() const override { return false; }

 private:
  /// An event of a graph is known inside of it alone, unless it is recorded for others.
  static void record(at::cuda::CUDAEvent& event) {
    const at::cuda::CUDAStream stream = at::cuda::getCurrentCUDAStream();
    if (c10::cuda::currentStreamCaptureStatusMayInitCtx() == c10::cuda::CaptureStatus::None)
      event.record(stream);
    else  // exists since an eager step
      check_cuda(cudaEventRecordWithFlags(event, stream, cudaEventRecordExternal), "recording an event");
  }

  float* device(FlatBuffer buffer) const { return buffer == FlatBuffer::gradients ? gradients_ : values_; }

  torch::Device device_;
  float* gradients_;
  float* values_;
  float* staging_ = nullptr;  // the communicator's; one place for each element, so that slices can travel in any order
  std::vector<at::cuda::CUDAEvent> gradient_there_;
  at::cuda::CUDAEvent backward_done_, delivered_;
  const bool takes_device_memory_;    // the communicator does: nothing is copied
  at::cuda::CUDAStream copy_stream_;  // or the communicator's
};

}  // namespace

std::unique_ptr<DeviceLink> make_cuda_link(const FlatSpace& space, Communicator& comm) {
  return std::make_unique<CudaLink>(space, comm);
}

}  // namespace tutti
