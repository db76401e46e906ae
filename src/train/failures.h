#pragma once

#include "tutti/error.h"

namespace tutti {

/// The loss or the weights are no numbers any more: a run that is started again comes to the same.
inline constexpr int kExitNotFinite = 86;
/// Ranks have different weights, as after a bit that has flipped in one's memory: the last checkpoint is good.
inline constexpr int kExitRanksDiffer = 87;

/// Training cannot go on, for a reason that has an exit code of its own.
class TrainingFailed : public Error {
 public:
  template <typename... Args>
  explicit TrainingFailed(int exit_code, fmt::format_string<Args...> format, Args&&... args)
      : Error(format, std::forward<Args>(args)...), exit_code_(exit_code) {}

  int exit_code() const { return exit_code_; }

 private:
  int exit_code_;
};

}  // namespace tutti
