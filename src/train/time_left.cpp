#include "train/time_left.h"

namespace tutti {

void TimeLeft::steps_took(double seconds, int64_t steps) {
  if (steps <= 0) return;
  if (first_steps_ < kFirstSteps) {
    first_steps_ += steps;
    first_s_ += seconds;
  } else {
    step_s_.add(seconds / static_cast<double>(steps), steps);
  }
}

std::optional<double> TimeLeft::seconds(int64_t steps_left, int64_t tests_left) const {
  if (first_steps_ == 0) return std::nullopt;
  const double step_s = step_s_.value().value_or(first_s_ / static_cast<double>(first_steps_));
  return static_cast<double>(steps_left) * step_s + static_cast<double>(tests_left) * test_s_.value_or(0);
}

}  // namespace tutti
