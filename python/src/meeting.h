#pragma once

#include <tutti/communicator.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace tutti::python {

/// How ranks with unequally many batches stay together. Every step, and every collective between steps, begins with a
/// short sum over ranks: one that makes a step says so, one that has come to something else says that it does not. The
/// latter learns from it that a step is to be made, takes part with nothing, and asks again.
class Meeting {
 public:
  explicit Meeting(Communicator& comm) : comm_(comm) {}

  /// Before the transfers of a session's step. What the session before has under way is completed, by its `drain`.
  void take_turn(int64_t session, std::function<void()> drain);
  /// This rank begins a step of a session (of which all ranks have the same), with these learning rates. Does not wait.
  void step_begins(int64_t session, const std::vector<double>& rates);
  /// What the step has used in the end. Ranks that took part with nothing have gone by what was said when it began.
  void step_ends(const std::vector<double>& rates, bool is_scaled);
  struct Answer {
    int64_t active = 0;   // ranks that make a step; 0: all have come here
    int64_t session = 0;  // whose step it is
    std::vector<double> rates = {};
    int64_t missed = 0;  // steps that ranks took part in with nothing, over all ranks
  };
  /// This rank has come to a collective between steps, having missed so many.
  Answer meet(int64_t missed);

 private:
  static constexpr std::size_t kRates = 8;
  // Active ranks; the sum of their sessions' numbers, and of those squared; missed steps; number of rates, and these in
  // halves.
  static constexpr std::size_t kWords = 5 + 2 * kRates;

  /// The end of the sum that the last step began with, while the communicator is free. Throws Error where ranks that
  /// took part with nothing cannot have made the same step.
  void complete();
  void send(std::vector<int64_t> words);

  Communicator& comm_;
  int64_t turn_ = -1;  // whose it is
  std::function<void()> drain_;
  std::vector<int64_t> words_;  // under way
  std::unique_ptr<Work> work_;
  std::vector<double> announced_;
  bool has_other_rates_ = false, is_scaled_ = false;
};

}  // namespace tutti::python
