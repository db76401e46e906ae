#include "engine/device_clock.h"

#include <chrono>
#include <vector>

#include "base/clock.h"

namespace tutti {
namespace {

class HostClock : public DeviceClock {
 public:
  std::size_t mark() override {
    marks_.push_back(Clock::now());
    return marks_.size() - 1;
  }
  double seconds_between(std::size_t from, std::size_t to) override {
    return std::chrono::duration<double>(marks_[to] - marks_[from]).count();
  }
  void forget_marks() override { marks_.clear(); }
  void wait() override {}

 private:
  std::vector<Clock::time_point> marks_;
};

}  // namespace

std::unique_ptr<DeviceClock> make_device_clock(const torch::Device& device) {
  if (device.is_cuda()) return make_cuda_clock();
  return std::make_unique<HostClock>();
}

}  // namespace tutti
