#include "engine/device_link.h"

#include "base/clock.h"

namespace tutti {
namespace {

class CpuLink : public DeviceLink {
 public:
  explicit CpuLink(const FlatSpace& space) : gradients_(space.gradients().data_ptr<float>()) {}

  void gradient_queued(std::size_t) override {}
  void backward_queued() override {}
  void wait_for_backward() override {}
  void join() override {}

  Span fetch(const Transfer& transfer, std::size_t, std::size_t, bool) override {
    return {gradients_ + transfer.begin, static_cast<std::size_t>(transfer.elements()), DataType::f32};
  }
  void deliver(const Transfer&) override {}

  std::size_t mark() override {
    marks_.push_back(Clock::now());
    return marks_.size() - 1;
  }
  double seconds_between(std::size_t from, std::size_t to) override {
    return std::chrono::duration<double>(marks_[to] - marks_[from]).count();
  }
  void forget_marks() override { marks_.clear(); }

 private:
  float* gradients_;
  std::vector<Clock::time_point> marks_;
};

}  // namespace

std::unique_ptr<DeviceLink> make_device_link(const FlatSpace& space, Communicator& comm) {
  if (space.gradients().is_cuda()) return make_cuda_link(space, comm);
  return std::make_unique<CpuLink>(space);
}

}  // namespace tutti
