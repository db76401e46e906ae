#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/trace.h"
#include "engine/device_clock.h"
#include "engine/step_observer.h"
#include "tutti/plan.h"

namespace tutti {

/// The events of a recorded step, which it is told of while the step is recorded, with the times at which the device
/// came to them in the last repetition. Borrows the plan and the trace.
class RepeatedTrace : public StepObserver {
 public:
  RepeatedTrace(Trace& trace, const Plan& plan, const torch::Device& device);

  void begin_forward() override { open(TraceKind::forward); }
  void repeat_forward() override;
  void begin_earlier_backward() override;
  void begin_backward() override;
  void gradient_ready(std::size_t parameter) override;
  void end_backward() override { close(); }
  void begin_update() override { open(TraceKind::update); }
  void end_update() override { close(); }
  void end_step(double, double) override {}
  void begin_transfer(std::size_t transfer) override;
  void end_transfer() override { close(); }
  void begin_slice_update(std::size_t transfer) override;
  void end_slice_update() override { close(); }
  void begin_wait() override { open(TraceKind::comm_wait); }
  void end_wait() override { close(); }
  void first_use(std::size_t parameter);

  /// Waits for the device, and adds the events of this step, which it has just repeated.
  void add_repetition(int64_t step);

 private:
  struct Span {
    TraceKind kind;
    int index;
    bool is_communication;  // it happens on the stream of transfers
    bool is_of_step_before;
    std::size_t begin, end;  // marks
  };
  void open(TraceKind kind, int index = -1, bool is_communication = false);
  void close();
  int64_t queued_ns(const Transfer& transfer, int64_t latest_ns) const;

  Trace& trace_;
  const Plan& plan_;
  std::unique_ptr<DeviceClock> clock_;
  std::vector<Span> spans_;
  std::vector<std::size_t> open_;  // of spans_: waits are inside of forward
  bool is_backward_begun_ = false;
  std::vector<int64_t> ready_ns_;  // by slot, in the repetition that is added; 0: never
};

}  // namespace tutti
