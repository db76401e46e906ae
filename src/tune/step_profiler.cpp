#include "tune/step_profiler.h"

#include <algorithm>

#include "base/median.h"

namespace tutti {
namespace {

// Where every batch is smaller than the full one, no step is ever recorded.
constexpr int kMostEagerSteps = 20;

}  // namespace

StepProfiler::StepProfiler(const FlatSpace& space, int wanted)
    : space_(space), wanted_(wanted), clock_(make_device_clock(space.gradients().device())) {}

void StepProfiler::begin_forward() {
  now_ = {};
  is_step_open_ = true;
  now_.forward = mark();
  now_.ready.assign(space_.parameters().size(), -1);
  now_.needed = now_.ready;
  watch_ = std::make_unique<ForwardWatch>(space_.parameters(),
                                          [this](std::size_t parameter) { now_.needed[parameter] = mark(); });
}

void StepProfiler::repeat_forward() { begin_forward(); }

void StepProfiler::begin_backward() {
  watch_.reset();
  now_.backward = mark();
}

void StepProfiler::gradient_ready(std::size_t parameter) { now_.ready[parameter] = mark(); }

void StepProfiler::end_backward() { now_.end = mark(); }

// Where the host carries transfers, each repetition of a recorded step has an update that is not part of it.
void StepProfiler::begin_update() { (is_step_open_ || !recorded_ ? now_ : *recorded_).update = mark(); }

void StepProfiler::end_update() { (is_step_open_ || !recorded_ ? now_ : *recorded_).updated = mark(); }

void StepProfiler::end_step(double waited_s, double outer_update_s) {
  if (is_recording_) return;
  is_step_open_ = false;
  Step step;
  step.length_s = seconds_since(last_end_);
  step.waited_s = waited_s;
  step.update_s = outer_update_s;
  last_end_ = Clock::now();
  ++eager_steps_;
  if (now_.end >= 0) eager_.emplace_back(std::move(now_), step);  // a rank without samples runs no backward
}

void StepProfiler::end_recording(bool is_recorded) {
  is_recording_ = is_step_open_ = false;
  watch_.reset();
  if (is_recorded && now_.end >= 0) recorded_ = std::move(now_);
}

void StepProfiler::step_repeated() {
  if (!recorded_) return;
  ++repeats_;
  if (repeats_ > 1 && repeats_ < kPaced) return;
  clock_->wait();
  if (repeats_ == 1) repeats_began_ = Clock::now();
  if (repeats_ == kPaced) repeated_length_s_ = seconds_since(repeats_began_) / (kPaced - 1);
  if (repeats_ <= kPaced) return;
  Step step;
  step.length_s = repeated_length_s_;
  step.waited_s = std::max(0.0, seconds_between(recorded_->end, recorded_->update));
  read(*recorded_, step);
  repeated_.push_back(std::move(step));
}

bool StepProfiler::is_complete(bool may_be_repeated) const {
  return static_cast<int>(repeated_.size()) >= wanted_ ||
         eager_steps_ >= (may_be_repeated ? wanted_ + kMostEagerSteps : wanted_);
}

double StepProfiler::seconds_between(std::ptrdiff_t from, std::ptrdiff_t to) const {
  if (from < 0 || to < 0) return -1;
  return clock_->seconds_between(static_cast<std::size_t>(from), static_cast<std::size_t>(to));
}

void StepProfiler::read(const Marks& marks, Step& step) const {
  step.forward_s = seconds_between(marks.forward, marks.backward);
  step.backward_s = seconds_between(marks.backward, marks.end);
  step.update_s += std::max(0.0, seconds_between(marks.update, marks.updated));
  for (const std::ptrdiff_t mark : marks.ready) step.ready_s.push_back(seconds_between(marks.backward, mark));
  for (const std::ptrdiff_t mark : marks.needed) step.needed_s.push_back(seconds_between(marks.forward, mark));
}

std::vector<StepProfiler::Step> StepProfiler::steps() const {
  if (!repeated_.empty()) return repeated_;
  std::vector<Step> steps;
  for (const auto& [marks, times] : eager_) {
    steps.push_back(times);
    read(marks, steps.back());
  }
  const std::size_t first = steps.size() > 1 ? std::max<std::size_t>(1, steps.size() / 3) : 0;
  steps.erase(steps.begin(), steps.begin() + static_cast<std::ptrdiff_t>(first));
  return steps;
}

Profile StepProfiler::result() {
  watch_.reset();
  const std::vector<Step> seen = steps();
  if (seen.empty()) return space_.unmeasured_profile();
  const auto median_over_steps = [&](auto seconds_of_step) {
    std::vector<double> seconds;
    for (const Step& step : seen) {
      const double value = seconds_of_step(step);
      if (value >= 0) seconds.push_back(value);
    }
    return lower_median(seconds);
  };

  Profile profile;
  profile.forward_s = median_over_steps([](const Step& s) { return s.forward_s; });
  profile.backward_s = median_over_steps([](const Step& s) { return s.backward_s; });
  profile.update_s = median_over_steps([](const Step& s) { return s.update_s; });
  profile.rest_s = median_over_steps(
      [](const Step& s) { return std::max(0.0, s.length_s - s.waited_s - s.update_s - s.forward_s - s.backward_s); });
  // The order of the last step, not of the medians: gradients of one operator are ready at nearly the same time.
  const auto& order = recorded_ && !repeated_.empty() ? recorded_->ready : eager_.back().first.ready;
  std::vector<std::size_t> parameters(order.size());
  for (std::size_t i = 0; i < parameters.size(); ++i) parameters[i] = parameters.size() - 1 - i;
  std::stable_sort(parameters.begin(), parameters.end(), [&](std::size_t a, std::size_t b) {
    return static_cast<std::size_t>(order[a]) < static_cast<std::size_t>(order[b]);  // -1 becomes the largest
  });
  for (const std::size_t i : parameters) {
    const FlatParameter& parameter = space_.parameters()[i];
    profile.gradients.push_back(
        {parameter.name, static_cast<int>(i), parameter.tensor.numel(),
         order[i] < 0 ? profile.backward_s : median_over_steps([&](const Step& s) { return s.ready_s[i]; }),
         median_over_steps([&](const Step& s) { return s.needed_s[i]; })});
  }
  clock_->forget_marks();
  return profile;
}

}  // namespace tutti
