#pragma once

#include <functional>
#include <memory>

#include "engine/device_link.h"
#include "engine/executor.h"
#include "engine/step_observer.h"
#include "engine/wire.h"
#include "plan/pending_updates.h"
#include "tutti/communicator.h"
#include "tutti/plan.h"

namespace tutti {

/// Queues a plan's transfers on the communicator's stream of a GPU, from the threads that compute: forked from the
/// computation where a gradient is ready, joined with it where it needs the result. What it queues can be recorded in a
/// CUDA graph and repeated.
///
/// Under Barrier::next_forward, what backward has not started (and every update) is the step's tail. It is queued when
/// the next forward needs its first parameter, so it stands at the head of the next step, and of its graph.
class StreamExecutor : public PlanExecutor {
 public:
  /// A tail is still to be queued. A recorded step begins with one: only then can it be repeated.
  virtual bool has_tail() const = 0;

  /// Between these nothing runs; afterwards everything is as it was before. `observer`, or null, is told of what would.
  virtual void begin_recording(StepObserver* observer) = 0;
  virtual void end_recording() = 0;

  /// A graph of step `step` was queued on the current stream. Waits until the one before the last has run, so that the
  /// host is never far ahead, and throws CommFailed when that never will.
  virtual void step_repeated(int64_t step) = 0;
};

/// `comm` is Communicator::recordable(), and `update` updates what a transfer carried; see HostExecutor. Borrows all.
std::unique_ptr<StreamExecutor> make_stream_executor(const Plan& plan, Communicator& comm, DeviceLink& link, Wire& wire,
                                                     std::function<void(const UpdatePiece&)> update);

}  // namespace tutti
