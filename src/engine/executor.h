#pragma once

#include <cstddef>
#include <cstdint>

namespace tutti {

/// Carries a Plan's transfers out, step after step, beside the computation. The computing threads report events and
/// wait where they need results. Between a completed wait_for_step() and the next begin_step() the communicator is free
/// for others. Destroying it does not wait for peers: what is under way is aborted.
///
/// HostExecutor does it with a thread, StreamExecutor by queueing the transfers on a GPU's stream: "ready" and "done"
/// are then points in streams.
class PlanExecutor {
 public:
  virtual ~PlanExecutor() = default;

  /// Only when the step before is complete.
  virtual void begin_step(int64_t step) = 0;
  /// What was computed so far, or queued on a device, produces the gradient.
  virtual void gradient_ready(std::size_t slot) = 0;
  /// The same for all of backward.
  virtual void backward_done() = 0;
  /// Returns when the device has finished backward: from here on, waiting for transfers is exposed communication.
  virtual void wait_for_backward() = 0;

  /// What is computed or queued from now on sees every transfer of the step done; throws what went wrong, with the
  /// transfer's name. Gives the seconds waited.
  virtual double wait_for_step() = 0;
  /// The same for the transfers of one slot; what went wrong is thrown by wait_for_step().
  virtual double wait_for_slot(std::size_t slot) = 0;
  /// How long transfers were under way in the last complete step.
  virtual double busy_s() const = 0;
};

}  // namespace tutti
