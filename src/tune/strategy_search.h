#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tutti/plan.h"

namespace tutti {

/// A plan that may be the best one.
struct SearchCandidate {
  std::string strategy;
  std::string settings;  // its sizes, as options
  Plan plan;
  double predicted_s = 0;          // a step, by simulation
  std::vector<double> measured_s;  // a step, in its window of each round
  bool is_dropped = false;         // tried no more

  /// The median (of two windows the shorter, since what disturbs one only makes it longer); 0: not measured.
  double step_s() const;
};

/// What one candidate takes over what another does: the median over the rounds that both ran in (a machine that is
/// slower for a while is so for both), and its standard error.
struct SearchRatio {
  double ratio = 1;
  double error = 0;
};
SearchRatio compare(const SearchCandidate& candidate, const SearchCandidate& other);

struct SearchOptions {
  int64_t settling_steps = 2;  // after a change of plan, before steps count
  int64_t window_steps = 5;
  int64_t part_steps = 1;  // that are timed together, since a device may be behind; the window's median of these counts
  int64_t watch_steps = 100;                            // of a window once the search is over
  int rounds = 24;                                      // at most: until the best is known, see end_round()
  int64_t steps = std::numeric_limits<int64_t>::max();  // no new round after so many
  double drop_threshold =
      0.5;  // slower than the best by this after one round, half of it after two, …: not tried again
  double drift_threshold = 0.25;  // steps differ by more than this from what they took when the plan was chosen
};

/// Tries plans in turn while training goes on: all give the same weights, so no step is lost. Every second round goes
/// backward, so that a machine that becomes slower all the time is no worse for the last. When the best is found, it
/// watches whether steps go on to take as long. Every rank holds one and tells it the same times, so that all come
/// to the same result.
///
///   each step: if (search.step_done(now)) { …all ranks take rank 0's search.window_step_s()…;
///                                           search.window_took(that);
///                                           …from here on, search.current() is the plan to run… }
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
  /// Seconds of a step of this candidate, had it run in the rounds of the current one.
  double step_s(const SearchCandidate& candidate) const {
    return current().step_s() * compare(candidate, current()).ratio;
  }

  /// A step has ended, at this time by some clock of this rank. True at the end of a window.
  bool step_done(double now_s);
  /// Seconds of a step in the window that ended: the median of its parts, so that other work that comes in between for
  /// a moment does not count.
  double window_step_s() const;
  void window_took(double step_s);
  /// Something else has taken time: the window begins anew.
  void disturb();

 private:
  void next_candidate();
  void end_round();

  std::vector<SearchCandidate> candidates_;
  const SearchOptions options_;
  std::size_t current_ = 0;
  int round_ = 0;      // odd ones go backward
  int64_t in_window_;  // steps of it done; below 0: still settling
  double part_start_s_ = 0;
  std::vector<double> parts_s_;  // of the window: seconds of a step, for each part_steps of it
  int64_t steps_ = 0;
  int strange_windows_ = 0;
  bool is_over_ = false;
};

}  // namespace tutti
