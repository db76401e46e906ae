#pragma once

#include <string>

#include "base/clock.h"

namespace tutti {

enum class Verbosity {
  quiet,    // what the run came to, and problems
  usual,    // and how it goes: a line an epoch
  verbose,  // and its steps and ranks
};

/// What a person sees of a run: lines, and on a terminal a progress line that is rewritten in place. Only one rank
/// speaks. Output that nobody takes any more (`tutti train | head`) is no reason to stop: that is said once, on stderr,
/// as long as SIGPIPE is ignored.
class Console {
 public:
  Console(bool speaks, Verbosity verbosity);
  ~Console();
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  /// What the run came to.
  void result(const std::string& text);
  /// "note: …": something that a person should know of.
  void note(const std::string& text) { result("note: " + text); }
  /// How the run goes.
  void line(const std::string& text);
  /// The same where somebody asked for all of it.
  void detail(const std::string& text);
  /// Whether detail() says something; also after a minute of silence where there is no progress line.
  bool wants_detail() const;
  bool is_verbose() const { return verbosity_ == Verbosity::verbose; }

  /// Whether progress() would show anything now.
  bool is_progress_due() const;
  /// Shown on terminals only, and not more often than a person can read. What does not fit into its line is left out.
  void progress(const std::string& text);

 private:
  void clear_progress();
  void write(const std::string& text);

  const bool speaks_;
  const Verbosity verbosity_;
  const bool terminal_;
  bool shows_progress_ = false;
  bool is_lost_ = false;  // some of what was written
  Clock::time_point last_progress_{}, last_line_ = Clock::now();
};

/// "1:02:03" or "2:03".
std::string readable_duration(double seconds);

}  // namespace tutti
