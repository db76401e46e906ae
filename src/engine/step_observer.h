#pragma once

#include <cstddef>

namespace tutti {

/// Is told what an engine's steps do, on the thread that does it.
///
/// On a GPU a step may be recorded while it is observed. What it is told then has not happened: it happens each time
/// the device repeats the step.
class StepObserver {
 public:
  virtual ~StepObserver() = default;
  virtual void begin_forward() = 0;
  /// The step has another forward before its last backward.
  virtual void repeat_forward() = 0;
  /// Of a micro-batch that is not the step's last.
  virtual void begin_earlier_backward() {}
  /// The last backward of the step.
  virtual void begin_backward() = 0;
  virtual void gradient_ready(std::size_t parameter) = 0;
  virtual void end_backward() = 0;
  /// Of everything, after all transfers; not called where slices are updated one by one.
  virtual void begin_update() = 0;
  virtual void end_update() = 0;
  /// The step is over: so long it waited for transfers, and so long the caller's own optimizer took.
  virtual void end_step(double waited_s, double outer_update_s) = 0;

  // Of transfers that are queued on a stream, in that stream; waits, in the one that computes:
  virtual void begin_transfer(std::size_t transfer) { (void)transfer; }
  virtual void end_transfer() {}
  /// Of what this transfer carried.
  virtual void begin_slice_update(std::size_t transfer) { (void)transfer; }
  virtual void end_slice_update() {}
  virtual void begin_wait() {}
  virtual void end_wait() {}

  /// Whether it wants to see the next step repeated from a recording, where that is possible.
  virtual bool wants_repeated() const { return false; }
  /// From here to end_recording() a step is recorded.
  virtual void begin_recording() {}
  virtual void end_recording(bool is_recorded) { (void)is_recorded; }
  /// The recorded step was queued once more.
  virtual void step_repeated() {}
};

}  // namespace tutti
