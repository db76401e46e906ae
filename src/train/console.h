#pragma once

#include <string>

#include "base/clock.h"

namespace tutti {

/// What a person sees of a run: lines, and on a terminal a progress line that is rewritten in place. Only one rank
/// speaks.
class Console {
 public:
  explicit Console(bool speaks);
  ~Console();
  void line(const std::string& text);
  /// Whether progress() would show anything now.
  bool is_progress_due() const { return speaks_ && terminal_ && seconds_since(last_progress_) >= 0.1; }
  /// Shown on terminals only, and not more often than a person can read.
  void progress(const std::string& text);

 private:
  void clear_progress();

  bool speaks_;
  bool terminal_;
  bool shows_progress_ = false;
  Clock::time_point last_progress_{};
};

/// "1:02:03" or "2:03".
std::string readable_duration(double seconds);

}  // namespace tutti
