#pragma once

#include <memory>
#include <vector>

#include "base/clock.h"
#include "engine/device_clock.h"
#include "engine/flat_space.h"
#include "engine/forward_watch.h"
#include "engine/step_observer.h"
#include "tutti/profile.h"

namespace tutti {

/// Measures a Profile over a few steps: when forward first reads each parameter, when backward has each gradient.
/// It only places marks; nothing is synchronized while a step runs. Borrows the space.
class StepProfiler : public StepObserver {
 public:
  explicit StepProfiler(const FlatSpace& space);

  void begin_forward() override;
  /// Only the last forward counts.
  void repeat_forward() override;
  void begin_backward() override;
  void gradient_ready(std::size_t parameter) override;
  void end_backward() override;
  void end_step(double waited_s, double update_s) override;

  int steps() const { return static_cast<int>(steps_.size()); }
  /// Medians over the steps seen, the first third left out (it warms caches up). Gradients are in the order in which
  /// they became ready; parameters that got none come last. Without any complete step: all times 0.
  Profile result();

 private:
  struct Step {
    std::size_t forward = 0, backward = 0, end = 0;  // marks
    bool complete = false;                           // a rank without samples runs no backward
    double length_s = 0, waited_s = 0, update_s = 0;
    std::vector<std::ptrdiff_t> ready, needed;  // marks by parameter; -1: none
  };

  const FlatSpace& space_;
  std::unique_ptr<DeviceClock> clock_;
  std::vector<Step> steps_;
  std::unique_ptr<ForwardWatch> watch_;
  Clock::time_point last_end_ = Clock::now();
};

}  // namespace tutti
