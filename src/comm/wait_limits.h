#pragma once

#include <algorithm>
#include <chrono>

#include "base/clock.h"

namespace tutti {

/// How long a wait goes on while nothing moves: no byte, no rank that comes.
struct WaitLimits {
  std::chrono::milliseconds silent{0};  // for a rank that gives no sign of life; 0: for ever
  /// For one that gives signs of life but does not come: it loads data, saves a checkpoint, is slow. 0: for ever.
  std::chrono::milliseconds late{0};
};

/// What a time-out means: a rank that lives may take ten times as long as one that is silent.
inline WaitLimits wait_limits(std::chrono::milliseconds timeout) { return {timeout, 10 * timeout}; }

/// How often ranks give a sign of life: several times before the others' patience is over.
inline std::chrono::milliseconds sign_interval(const WaitLimits& limits) {
  constexpr std::chrono::milliseconds kShortest{20}, kLongest{500};
  return limits.silent.count() == 0 ? kLongest : std::clamp(limits.silent / 10, kShortest, kLongest);
}

/// The time in which this process ran. After a pause in which it did not look at it (it was stopped, the machine slept)
/// the clock goes on as if the pause had been short: it could have heard nobody, so nobody was silent.
class AwakeClock {
 public:
  /// To be called several times a second while somebody wants to know.
  std::chrono::nanoseconds look() {
    constexpr std::chrono::milliseconds kLongestPause{500};
    const auto now = Clock::now();
    time_ += std::min<std::chrono::nanoseconds>(now - last_, kLongestPause);
    last_ = now;
    return time_;
  }

 private:
  Clock::time_point last_ = Clock::now();
  std::chrono::nanoseconds time_{0};
};

}  // namespace tutti
