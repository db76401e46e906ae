#pragma once

#include <functional>
#include <memory>

namespace tutti {

/// Device work that was recorded once and is queued again as a whole, by one call: a CUDA graph. Its memory stays
/// reserved while it lives.
class StepGraph {
 public:
  virtual ~StepGraph() = default;
  /// Queues the work on the current stream. Kernels read and write the same memory as when they were recorded. Random
  /// numbers come from where torch's generator stands now, and it moves on, as if the work were queued anew.
  virtual void replay() = 0;
  /// Waits until no more than two repetitions are under way. The device never runs out of work for that, and the host
  /// sees how long steps take.
  virtual void keep_pace() = 0;
};

/// Records what `work` queues on the current stream (a ComputeStream), without running it. The same work has run
/// before, at least three times on this stream: libraries choose their kernels and take their memory in the first runs.
/// Throws Error when something in it needs the host; the device is then as it was before.
std::unique_ptr<StepGraph> record_graph(const std::function<void()>& work);

}  // namespace tutti
