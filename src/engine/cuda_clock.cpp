#include <ATen/cuda/CUDAEvent.h>

#include <vector>

#include "engine/device_clock.h"

namespace tutti {
namespace {

class CudaClock : public DeviceClock {
 public:
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
  std::vector<at::cuda::CUDAEvent> marks_;
};

}  // namespace

std::unique_ptr<DeviceClock> make_cuda_clock() { return std::make_unique<CudaClock>(); }

}  // namespace tutti
