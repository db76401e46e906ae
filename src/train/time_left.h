#pragma once

#include <cstdint>
#include <optional>

#include "base/smoothed_mean.h"

namespace tutti {

/// How long a run still takes, judged by its own steps and tests so far.
class TimeLeft {
 public:
  /// Wall time, with the checkpoints between these steps.
  void steps_took(double seconds, int64_t steps);
  void test_took(double seconds) { test_s_ = seconds; }

  /// None before the first step. Tests count once there has been one.
  std::optional<double> seconds(int64_t steps_left, int64_t tests_left) const;

 private:
  // The first steps build kernels, warm caches and measure the profile: they count only while there are no others.
  static constexpr int64_t kFirstSteps = 5;
  static constexpr double kSpan = 200;  // steps that the rate is smoothed over

  int64_t first_steps_ = 0;
  double first_s_ = 0;
  SmoothedMean step_s_{kSpan};
  std::optional<double> test_s_;
};

}  // namespace tutti
