#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/plan.h"

namespace tutti {

/// A plan that may be the best one.
struct SearchCandidate {
  std::string strategy;
  std::string settings;  // its sizes, as options
  Plan plan;
  double predicted_s = 0;          // a step, by simulation
  std::vector<double> measured_s;  // a step, in each window of steps that it ran for
  bool is_dropped = false;         // clearly slower than another

  /// The median (of two windows the shorter, since what disturbs one only makes it longer); 0: not measured.
  double step_s() const;
};

struct SearchOptions {
  int64_t settling_steps = 2;  // after a change of plan, before steps count
  int64_t window_steps = 5;
  int64_t watch_steps = 100;  // of a window once the search is over
  int rounds = 6;
  double drops = 0.3;  // slower than the best by more than this after one round, half of it after two, …: tried no more
  double drifts = 0.25;  // steps differ by more than this from what they took when the plan was chosen
};

/// Tries plans in turn while training goes on: all give the same weights, so no step is lost. When the best is found,
/// it watches whether steps go on to take as long. Every rank holds one and tells it the same times, so that all come
/// to the same result.
///
///   each step: if (search.step_done()) { …all ranks take rank 0's seconds…; search.window_took(seconds);
///                                        …from here on, search.current() is the plan to run… }
class StrategySearch {
 public:
  StrategySearch(std::vector<SearchCandidate> candidates, const SearchOptions& options);

  const SearchCandidate& current() const { return candidates_[current_]; }
  std::size_t current_index() const { return current_; }
  const std::vector<SearchCandidate>& candidates() const { return candidates_; }
  bool is_over() const { return is_over_; }
  /// Twice in a row, a window has taken so much longer or shorter that another plan may be better now.
  bool has_drifted() const { return strange_windows_ >= 2; }
  int64_t steps() const { return steps_; }

  /// True at the end of a window.
  bool step_done();
  /// After a step: the next ones count, so that the clock of a window starts.
  bool window_begins() const { return in_window_ == 0; }
  void window_took(double seconds);
  /// Something else has taken time: the window begins anew.
  void disturb();

 private:
  int64_t window_steps() const { return is_over_ ? options_.watch_steps : options_.window_steps; }
  void next_candidate();

  std::vector<SearchCandidate> candidates_;
  const SearchOptions options_;
  std::size_t current_ = 0;
  int round_ = 0;
  int64_t in_window_;  // steps of it done; below 0: still settling
  int64_t steps_ = 0;
  int strange_windows_ = 0;
  bool is_over_ = false;
};

}  // namespace tutti
