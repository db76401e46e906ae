#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "engine/device_clock.h"
#include "engine/flat_space.h"
#include "engine/forward_watch.h"
#include "engine/step_observer.h"
#include "tutti/profile.h"

namespace tutti {

/// Measures a Profile over a few steps: when forward first reads each parameter, when backward has each gradient.
/// It only places marks; nothing is synchronized while a step runs.
///
/// Where a GPU repeats a recorded step, those repetitions are measured, and the eager steps before them do not count:
/// their times are those of the host's calls. Borrows the space.
class StepProfiler : public StepObserver {
 public:
  /// Over so many steps.
  StepProfiler(const FlatSpace& space, int wanted);

  void begin_forward() override;
  /// Only the last forward counts.
  void repeat_forward() override;
  void begin_backward() override;
  void gradient_ready(std::size_t parameter) override;
  void end_backward() override;
  void begin_update() override;
  void end_update() override;
  void end_step(double waited_s, double outer_update_s) override;
  bool wants_repeated() const override { return repeats_ < kPaced + wanted_; }
  void begin_recording() override { is_recording_ = true; }
  void end_recording(bool is_recorded) override;
  void step_repeated() override;

  /// Whether enough steps have been seen: repeated ones, where those are to come.
  bool is_complete(bool may_be_repeated) const;
  /// Medians over the steps seen; of eager ones the first third is left out (it warms caches up). Gradients are in the
  /// order in which they became ready; parameters that got none come last. Without any complete step: all times 0.
  Profile result();

 private:
  /// Of one step; by parameter where there are several. -1: none.
  struct Marks {
    std::ptrdiff_t forward = -1, backward = -1, end = -1, update = -1, updated = -1;
    std::vector<std::ptrdiff_t> ready, needed;
  };
  struct Step {
    double length_s = 0, waited_s = 0, forward_s = 0, backward_s = 0, update_s = 0;
    std::vector<double> ready_s, needed_s;  // by parameter, since backward and forward began; below 0: never
  };
  std::ptrdiff_t mark() { return static_cast<std::ptrdiff_t>(clock_->mark()); }
  /// -1 where one of the marks is not there; waits for the device.
  double seconds_between(std::ptrdiff_t from, std::ptrdiff_t to) const;
  /// What the marks say.
  void read(const Marks& marks, Step& step) const;
  std::vector<Step> steps() const;

  /// The first repetitions only say how long one takes: whoever reads marks lets the device wait.
  static constexpr int kPaced = 8;

  const FlatSpace& space_;
  const int wanted_;
  std::unique_ptr<DeviceClock> clock_;
  Marks now_;  // of the step under way
  int eager_steps_ = 0;
  std::vector<std::pair<Marks, Step>> eager_;  // their steps have what marks do not tell
  std::optional<Marks> recorded_;              // those of the recorded step
  bool is_recording_ = false, is_step_open_ = false;
  int repeats_ = 0;
  double repeated_length_s_ = 0;
  std::vector<Step> repeated_;
  std::unique_ptr<ForwardWatch> watch_;
  Clock::time_point last_end_ = Clock::now(), repeats_began_;
};

}  // namespace tutti
