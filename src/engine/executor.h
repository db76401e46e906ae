#pragma once

#include <cstddef>
#include <cstdint>

namespace tutti {

/// Carries a Plan's transfers out, step after step, beside the computation. The computing threads report events and
/// wait where they need results. Between a completed wait_for_step() and the next begin_step() the communicator is free
/// for others. Destroying it does not wait for peers: what is under way is aborted.
///
/// HostExecutor does it with a thread. One that queues transfers on a GPU's streams, where steps are captured as
/// graphs, fits behind the same calls: "ready" and "done" are then points in a stream.
class PlanExecutor {
 public:
  virtual ~PlanExecutor() = default;

  /// Only when the step before is complete.
  virtual void begin_step(int64_t step) = 0;
  virtual void gradient_ready(std::size_t slot) = 0;
  virtual void backward_done() = 0;

  /// Returns when every transfer of the step is done; throws what went wrong, with the transfer's name. Gives the
  /// seconds waited.
  virtual double wait_for_step() = 0;
  /// Returns when the transfers of one slot are done, or when something went wrong: wait_for_step() then throws it.
  virtual double wait_for_slot(std::size_t slot) = 0;
  /// How long transfers were under way in the last complete step.
  virtual double busy_s() const = 0;
};

}  // namespace tutti
