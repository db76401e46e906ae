#include "tune/step_profiler.h"

#include <algorithm>

#include "base/median.h"

namespace tutti {

StepProfiler::StepProfiler(const FlatSpace& space)
    : space_(space), clock_(make_device_clock(space.gradients().device())) {}

void StepProfiler::begin_forward() {
  Step step;
  step.forward = clock_->mark();
  step.ready.assign(space_.parameters().size(), -1);
  step.needed = step.ready;
  steps_.push_back(step);
  watch_ = std::make_unique<ForwardWatch>(space_.parameters(), [this](std::size_t parameter) {
    steps_.back().needed[parameter] = static_cast<std::ptrdiff_t>(clock_->mark());
  });
}

void StepProfiler::repeat_forward() {
  steps_.pop_back();
  begin_forward();
}

void StepProfiler::begin_backward() {
  watch_.reset();
  steps_.back().backward = clock_->mark();
}

void StepProfiler::gradient_ready(std::size_t parameter) {
  steps_.back().ready[parameter] = static_cast<std::ptrdiff_t>(clock_->mark());
}

void StepProfiler::end_backward() {
  steps_.back().end = clock_->mark();
  steps_.back().complete = true;
}

void StepProfiler::end_step(double waited_s, double update_s) {
  Step& step = steps_.back();
  step.length_s = seconds_since(last_end_);
  step.waited_s = waited_s;
  step.update_s = update_s;
  last_end_ = Clock::now();
}

Profile StepProfiler::result() {
  watch_.reset();
  steps_.erase(std::remove_if(steps_.begin(), steps_.end(), [](const Step& step) { return !step.complete; }),
               steps_.end());
  if (steps_.empty()) return space_.unmeasured_profile();
  const std::size_t first = steps_.size() > 1 ? std::max<std::size_t>(1, steps_.size() / 3) : 0;
  const auto median_over_steps = [&](auto seconds_of_step) {
    std::vector<double> seconds;
    for (std::size_t i = first; i < steps_.size(); ++i) {
      const double value = seconds_of_step(steps_[i]);
      if (value >= 0) seconds.push_back(value);
    }
    return lower_median(seconds);
  };
  const auto since = [&](std::size_t from, std::ptrdiff_t to) {
    return to < 0 ? -1.0 : clock_->seconds_between(from, static_cast<std::size_t>(to));
  };

  Profile profile;
  profile.forward_s = median_over_steps([&](const Step& s) { return clock_->seconds_between(s.forward, s.backward); });
  profile.backward_s = median_over_steps([&](const Step& s) { return clock_->seconds_between(s.backward, s.end); });
  profile.update_s = median_over_steps([](const Step& s) { return s.update_s; });
  profile.rest_s = median_over_steps([&](const Step& s) {
    return std::max(0.0, s.length_s - s.waited_s - s.update_s - clock_->seconds_between(s.forward, s.end));
  });
  // The order of the last step, not of the medians: gradients of one operator are ready at nearly the same time.
  const auto& order = steps_.back().ready;
  std::vector<std::size_t> parameters(order.size());
  for (std::size_t i = 0; i < parameters.size(); ++i) parameters[i] = parameters.size() - 1 - i;
  std::stable_sort(parameters.begin(), parameters.end(), [&](std::size_t a, std::size_t b) {
    return static_cast<std::size_t>(order[a]) < static_cast<std::size_t>(order[b]);  // -1 becomes the largest
  });
  for (const std::size_t i : parameters) {
    const FlatParameter& parameter = space_.parameters()[i];
    profile.gradients.push_back({parameter.name, static_cast<int>(i), parameter.tensor.numel(),
                                 order[i] < 0 ? profile.backward_s : median_over_steps([&](const Step& s) {
                                   return since(s.backward, s.ready[i]);
                                 }),
                                 median_over_steps([&](const Step& s) { return since(s.forward, s.needed[i]); })});
  }
  clock_->forget_marks();
  return profile;
}

}  // namespace tutti
