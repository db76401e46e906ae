#pragma once

#include <cstddef>

namespace tutti {

/// Is told what an engine's steps do, on the thread that does it.
class StepObserver {
 public:
  virtual ~StepObserver() = default;
  virtual void begin_forward() = 0;
  /// The step has another forward before its last backward.
  virtual void repeat_forward() = 0;
  /// The last backward of the step.
  virtual void begin_backward() = 0;
  virtual void gradient_ready(std::size_t parameter) = 0;
  virtual void end_backward() = 0;
  /// The step is over: so long it waited for transfers, and so long the update of everything took (0: slice by slice).
  virtual void end_step(double waited_s, double update_s) = 0;
};

}  // namespace tutti
