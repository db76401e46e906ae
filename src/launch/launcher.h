#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "base/exit_note.h"

namespace tutti {

/// For options that cannot work: trying again would not help.
inline constexpr int kExitUsage = 2;

/// A program in a copy of this process: from its words to its exit code.
using RunHere = std::function<int(const std::vector<std::string>& words)>;

struct LaunchOptions {
  int ranks = 1;
  int threads = 1;                   // per rank; exported as OMP_NUM_THREADS and the like, and as TUTTI_THREADS
  std::vector<std::string> command;  // what each rank executes; command[0] is the program, looked up in PATH
  RunHere run_here = {};     // what it does instead, with the words of `command`: what is slow to load is there already
  bool is_launcher = false;  // the command starts the ranks itself and tells them their places
  int launched = 0;          // by such a command: how many ranks, which note how they end

  int quiet_code = 0;  // an exit code with which a rank ends on purpose, having said so

  /// How long a rank may be stopped by a signal (SIGSTOP) before the job is ended; 0: for ever.
  std::chrono::milliseconds stop_limit{0};
  /// What SIGQUIT prints; where there is none, SIGQUIT ends the job as it ends any program.
  std::function<std::string()> status = {};

  // When a rank has failed: how long the others may take to notice it and finish by themselves before they get SIGTERM,
  // and how long after that before SIGKILL.
  std::chrono::milliseconds finish_grace{3000};
  std::chrono::milliseconds term_grace{5000};
};

/// Starts `ranks` processes that know their places (TUTTI_RANK, …; see comm/launch_env.h), merges their output,
/// forwards signals, and waits for all. Returns the exit code: 0 when all succeeded, else that of the rank that failed
/// first (128 + signal when it was killed), which one line on stderr names; 127 when the program could not be executed.
/// Where ranks only stopped because of another one, that line names the one they blame (base/exit_note.h). A rank that
/// a signal stops is named, too, when that happens. Throws UsageError for options that cannot work, and Error when
/// processes cannot be started; none is left then.
///
/// Output: rank 0 keeps stdin, stdout and stderr. The others read nothing; what they write comes out in whole lines
/// that begin with "[rank 2] ".
/// Signals: SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 go on to all ranks; a second SIGINT kills them. Ctrl-C at a
/// terminal reaches the ranks by itself and is not sent again, but someone who signals a whole process group or control
/// group makes each rank see the signal twice: a rank's handler should only note it.
/// With `is_launcher` the command (mpirun) reads nothing, is in a process group of its own, so that what signals our
/// group reaches it through us, and gets SIGUSR1 for the first SIGTERM: it passes that on and waits. Its ranks note on
/// stderr how they end (base/exit_note.h), which decides the exit code. finish_grace after one has failed the command
/// is killed, and with it all that it has started here. The ranks die with the thread that called this: call it from
/// the main thread, one call at a time in a process.
/// `stop_signal`, where given, becomes the first of SIGINT, SIGTERM, SIGHUP and SIGUSR1 that came, or 0: somebody wants
/// the ranks to end, whatever their exit code.
int launch_ranks(const LaunchOptions& options, int* stop_signal = nullptr);

}  // namespace tutti
