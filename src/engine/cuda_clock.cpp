#include <c10/cuda/CUDAGraphsC10Utils.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include <vector>

#include "base/cuda_status.h"
#include "engine/device_clock.h"

namespace tutti {
namespace {

class CudaClock : public DeviceClock {
 public:
  ~CudaClock() override { CudaClock::forget_marks(); }
  std::size_t mark() override {
    cudaEvent_t event = nullptr;
    check_cuda(cudaEventCreate(&event), "making an event");
    marks_.push_back(event);
    // An event of a graph is known inside of it alone, and has no time, unless it is recorded for others.
    const bool is_recording = c10::cuda::currentStreamCaptureStatusMayInitCtx() != c10::cuda::CaptureStatus::None;
    check_cuda(cudaEventRecordWithFlags(event, c10::cuda::getCurrentCUDAStream(),
                                        is_recording ? cudaEventRecordExternal : cudaEventRecordDefault),
               "recording an event");
    return marks_.size() - 1;
  }
  double seconds_between(std::size_t from, std::size_t to) override {
    check_cuda(cudaEventSynchronize(marks_[to]), "waiting for an event");
    float milliseconds = 0;
    check_cuda(cudaEventElapsedTime(&milliseconds, marks_[from], marks_[to]), "reading the time of an event");
    return milliseconds * 1e-3;
  }
  void forget_marks() override {
    for (const cudaEvent_t event : marks_) (void)cudaEventDestroy(event);
    marks_.clear();
  }
  void wait() override {
    check_cuda(cudaStreamSynchronize(c10::cuda::getCurrentCUDAStream()), "waiting for the device");
  }

 private:
  std::vector<cudaEvent_t> marks_;
};

}  // namespace

std::unique_ptr<DeviceClock> make_cuda_clock() { return std::make_unique<CudaClock>(); }

}  // namespace tutti
