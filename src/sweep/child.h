#pragma once

#include <csignal>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/signals.h"

namespace tutti::sweep {

struct ChildOptions {
  std::vector<std::string> words;  // the program, looked up in PATH, and its arguments
  std::filesystem::path log;       // what it prints
  double timeout_s = 0;            // 0: as long as it takes
  int death_signal = SIGKILL;      // what it gets when this process dies
  int keep_fd = -1;                // a descriptor that it inherits
  double grace_s = 10;             // from SIGTERM to SIGKILL
};

struct ChildResult {
  int exit_code = -1;  // 128 + signal when it was killed
  bool timed_out = false;
  bool was_stopped = false;  // because a signal asked this process to stop
};

/// Runs a program to its end in a process group of its own, and leaves none of that group behind: also not when this
/// process is killed, if the program sees to its own children as `tutti train` does. `tick` is called a few times a
/// second. It does not know of the launcher that may have started us. Throws Error when it cannot be started. Call it
/// from the main thread.
ChildResult run_child(const ChildOptions& options, StopSignals& signals, const std::function<void()>& tick);

}  // namespace tutti::sweep
