#include "engine/device_link.h"

#include "base/clock.h"

namespace tutti {
namespace {

class CpuLink : public DeviceLink {
 public:
  explicit CpuLink(const FlatSpace& space)
      : gradients_(space.gradients().data_ptr<float>()), values_(space.values().data_ptr<float>()) {}

  void gradient_queued(std::size_t) override {}
  void backward_queued() override {}
  void wait_for_backward() override {}
  void join() override {}

  void enter_comm_thread() override {}
  void wait_for_gradients(std::size_t, std::size_t, bool) override {}
  Span fetch(FlatBuffer buffer, int64_t begin, int64_t end) override { return host(buffer, begin, end); }
  Span host(FlatBuffer buffer, int64_t begin, int64_t end) override {
    return {(buffer == FlatBuffer::gradients ? gradients_ : values_) + begin, static_cast<std::size_t>(end - begin),
            DataType::f32};
  }
  void deliver(FlatBuffer, int64_t, int64_t) override {}
  void leave_for_join() override {}
  bool any_thread_may_update() const override { return true; }

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
  float* values_;
  std::vector<Clock::time_point> marks_;
};

}  // namespace

std::unique_ptr<DeviceLink> make_device_link(const FlatSpace& space, Communicator& comm) {
  if (space.gradients().is_cuda()) return make_cuda_link(space, comm);
  return std::make_unique<CpuLink>(space);
}

}  // namespace tutti
