#include "sweep/child.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "base/clock.h"
#include "base/process.h"
#include "tutti/error.h"

namespace tutti::sweep {
namespace {

constexpr int kTickMilliseconds = 250;

/// What tells a process that mpirun, srun or another Tutti has started it: true of us perhaps, but not of a cell.
bool is_of_a_launcher(std::string_view name) {
  for (const std::string_view prefix :
       {"TUTTI_RANK", "TUTTI_SIZE", "TUTTI_LOCAL_", "TUTTI_NODE", "TUTTI_JOB", "TUTTI_THREADS", "OMPI_COMM_WORLD_",
        "PMI_", "PMIX_", "SLURM_STEP", "SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID"})
    if (name.substr(0, prefix.size()) == prefix) return true;
  return false;
}

pid_t start(const ChildOptions& options) {
  const Fd log(::open(options.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!log) throw Error("cannot open {}: {}", options.log.string(), std::strerror(errno));
  const Fd nothing = open_null();
  ChildStart child;
  child.words = options.words;
  child.environment.emplace();
  for (char** variable = environ; *variable != nullptr; ++variable)
    if (!is_of_a_launcher(*variable)) child.environment->emplace_back(*variable);
  child.stdin_fd = nothing.get();
  child.stdout_fd = child.stderr_fd = log.get();
  child.kept_fd = options.keep_fd;
  child.leads_group = true;
  child.death_signal = options.death_signal;
  return start_child(child);
}

/// Whether it has ended. It keeps its number, and so its group, until it is waited for.
bool has_ended(pid_t child) {
  siginfo_t info = {};
  return ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == child;
}

}  // namespace

ChildResult run_child(const ChildOptions& options, StopSignals& signals, const std::function<void()>& tick) {
  ChildResult result;
  const pid_t child = start(options);
  const auto started = Clock::now();
  Clock::time_point told_at{};
  bool is_told = false;
  while (!has_ended(child)) {
    const bool is_late = options.timeout_s > 0 && seconds_since(started) > options.timeout_s;
    if (!is_told && (is_late || signals.first() != 0)) {
      is_told = true;
      told_at = Clock::now();
      (signals.first() != 0 ? result.was_stopped : result.timed_out) = true;
      ::kill(-child, SIGTERM);
    }
    if (signals.first() != 0) result.was_stopped = true;
    // A person who presses Ctrl-C twice is in a hurry.
    if (is_told && (seconds_since(told_at) > options.grace_s || signals.count() > 1)) ::kill(-child, SIGKILL);
    tick();
    signals.wait(kTickMilliseconds);
  }
  ::kill(-child, SIGKILL);  // whatever it has left behind
  result.exit_code = exit_code_of(wait_for_child(child));
  if (result.exit_code == 0) result.was_stopped = result.timed_out = false;  // it was quicker
  return result;
}

}  // namespace tutti::sweep
