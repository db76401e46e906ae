#pragma once

#include <sys/types.h>

#include <chrono>
#include <csignal>
#include <optional>
#include <utility>
#include <vector>

#include "base/fd.h"

namespace tutti {

/// While it lives, these signals are dealt with in this way. A SIGHUP that nohup has ignored stays ignored.
class SignalActions {
 public:
  SignalActions(const std::vector<int>& numbers, const struct sigaction& action);
  ~SignalActions();
  SignalActions(const SignalActions&) = delete;
  SignalActions& operator=(const SignalActions&) = delete;

 private:
  std::vector<std::pair<int, struct sigaction>> replaced_;
};

/// timeout(1) and others signal a process and then its group: a SIGINT this soon after another is the same one.
inline constexpr std::chrono::milliseconds kSameInterrupt{200};

struct SignalNote {
  int number;
  bool from_terminal;  // the kernel has sent it to the whole foreground group
  pid_t about;         // SIGCHLD: who has ended
};

/// While it lives, these signals arrive as notes in a pipe. Handlers rather than signalfd: with that, a thread some
/// library has started, and that does not block these signals, would get them with their default action. Of several,
/// the youngest gets the notes.
class SignalNotes {
 public:
  /// `flags` are those of sigaction(): SA_RESTART, or 0 where a call that blocks shall give way.
  SignalNotes(const std::vector<int>& numbers, int flags);
  ~SignalNotes();
  SignalNotes(const SignalNotes&) = delete;
  SignalNotes& operator=(const SignalNotes&) = delete;

  int fd() const { return pipe_.read_end.get(); }
  std::optional<SignalNote> next() const;

 private:
  Pipe pipe_;
  int outer_fd_;  // where an older one gets its notes
  sigset_t old_mask_ = {};
  std::optional<SignalActions> actions_;
};

/// While it lives, SIGINT, SIGTERM and SIGHUP are noted instead of ending the process.
class StopSignals {
 public:
  StopSignals();

  /// The first of them that came, or 0.
  int first();
  /// How many came.
  int count();
  /// Returns after so long, or when a signal has come or a child has ended since the last call.
  void wait(int milliseconds);

 private:
  void take_notes();

  SignalNotes notes_;
  int first_ = 0;
  int count_ = 0;
  bool is_woken_ = false;
};

}  // namespace tutti
