#include "engine/device_link.h"

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
  void wait_for_gradients(SlotRange, bool) override {}
  Span fetch(FlatBuffer buffer, int64_t begin, int64_t end) override { return host(buffer, begin, end); }
  Span host(FlatBuffer buffer, int64_t begin, int64_t end) override {
    return {(buffer == FlatBuffer::gradients ? gradients_ : values_) + begin, static_cast<std::size_t>(end - begin),
            DataType::f32};
  }
  void deliver(FlatBuffer, int64_t, int64_t) override {}
  void record_delivered() override {}
  bool updates_on_host() const override { return true; }

 private:
  float* gradients_;
  float* values_;
};

}  // namespace

std::unique_ptr<DeviceLink> make_device_link(const FlatSpace& space, Communicator& comm) {
  if (space.gradients().is_cuda()) return make_cuda_link(space, comm);
  return std::make_unique<CpuLink>(space);
}

}  // namespace tutti
