#pragma once

#include <sys/types.h>

#include <csignal>
#include <optional>
#include <utility>
#include <vector>

#include "base/fd.h"

namespace tutti {

constexpr int kForwardedSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};

struct SignalNote {
  int number;
  bool from_terminal;  // the kernel has sent it to the whole foreground group
  pid_t about;         // SIGCHLD: who has ended
};

/// While it lives, signals (those forwarded, and SIGCHLD) arrive as notes in a pipe. Handlers rather than signalfd:
/// with that, a thread some library has started, and that does not block these signals, would get them with their
/// default action.
class SignalNotes {
 public:
  SignalNotes();
  SignalNotes(const SignalNotes&) = delete;
  SignalNotes& operator=(const SignalNotes&) = delete;
  ~SignalNotes();

  int fd() const { return pipe_.read_end.get(); }
  bool ignores_hangup() const { return ignores_hangup_; }
  std::optional<SignalNote> next() const;

 private:
  void replace(int number, const struct sigaction& action);

  Pipe pipe_;
  bool ignores_hangup_ = false;
  std::vector<std::pair<int, struct sigaction>> replaced_;
  sigset_t old_mask_ = {};
};

}  // namespace tutti
