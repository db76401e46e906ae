#include "launch/launcher.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <map>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/fd.h"
#include "base/line_relay.h"
#include "base/proc_files.h"
#include "base/process.h"
#include "base/signals.h"
#include "base/terminal.h"
#include "launch/mpirun_files.h"
#include "launch/orphans.h"
#include "launch/rank_environment.h"
#include "launch/stopped_ranks.h"
#include "tutti/error.h"

// One thread and one poll() loop. Everything that happens arrives through a descriptor: signals (SIGCHLD among them)
// through a pipe that their handler writes to, the ranks' output through a pipe each, a failed exec through a pipe that
// closes by itself when exec succeeds. Nothing here waits for anything else: a reader that stops reading our output
// must not keep a signal from being forwarded.

namespace tutti {
namespace {

// What a launcher leaves behind, among it the ssh of a node that cannot be reached, may take so long to end by itself.
constexpr std::chrono::milliseconds kOrphanGrace{1000};
constexpr int kNothingDone = 1;

/// Without descriptors 0 to 2 our pipes would get these numbers and be mistaken for stdin, stdout and stderr.
void ensure_standard_descriptors() {
  for (int fd = 0; fd <= 2; ++fd) {
    if (::fcntl(fd, F_GETFD) < 0) ::open("/dev/null", O_RDWR);  // takes the lowest free number, which is fd
  }
}

struct sigaction ignoring() {
  struct sigaction action = {};
  action.sa_handler = SIG_IGN;
  return action;
}

struct Rank {
  pid_t pid = 0;
  bool is_running = false;
};

/// A process that a signal has stopped.
struct StoppedRank {
  std::string name;
  std::optional<int> rank;
  Clock::time_point since;
};

// How often the kernel is asked for stopped processes that are no children of ours.
constexpr std::chrono::milliseconds kLookForStopped{1000};
// Ranks notice by themselves that one has stopped, and can say in what they missed it: they come first.
constexpr std::chrono::milliseconds kRanksFirst{1000};

/// Ctrl-Z and the like stop a job on purpose, and all of it.
bool is_job_control(int number) { return number == SIGTSTP || number == SIGTTIN || number == SIGTTOU; }

std::vector<int> noted_signals(const LaunchOptions& options) {
  std::vector<int> numbers = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD, SIGCONT};
  if (options.status) numbers.push_back(SIGQUIT);
  return numbers;
}

class Launch {
 public:
  explicit Launch(const LaunchOptions& options)
      : options_(options),
        notes_(noted_signals(options), 0),
        exec_failures_(make_polled_pipe()),
        exit_notes_(make_polled_pipe()),
        ranks_(static_cast<std::size_t>(options.ranks)) {
    if (options.is_launcher) orphans_.emplace();
  }
  Launch(const Launch&) = delete;
  Launch& operator=(const Launch&) = delete;

  /// Leaves no rank behind, whatever happened.
  ~Launch() {
    send_to_all(SIGKILL);
    for (const Rank& rank : ranks_) {
      if (rank.is_running) wait_for_child(rank.pid);
    }
    if (orphans_) Orphans::end_all(std::chrono::milliseconds(0));
  }

  int run() {
    start_all();
    while (running() > 0) turn(next_deadline());
    if (orphans_) {
      Orphans::end_all(kOrphanGrace);
      remove_mpirun_files(ranks_[0].pid);
    }
    relay_.finish();
    const int code = verdict();
    while (!relay_.has_passed_on_all() && !gives_up_output_) turn(std::nullopt);
    return code;
  }
  /// The first that came.
  int stop_signal() const { return stop_signal_; }

 private:
  struct Failure {
    int rank;
    int status;  // as waitpid() gives it
  };

  void start_all() {
    const std::string job = make_job_name();
    for (int rank = 0; rank < options_.ranks; ++rank) {
      try {
        start(rank, options_.is_launcher ? own_environment()
                                         : rank_environment(options_, rank, job, exit_notes_.write_end.get()));
      } catch (const Error& error) {
        throw Error("cannot start rank {} of {}: {}", rank, options_.ranks, error.what());
      }
    }
    exec_failures_.write_end.close();
    exit_notes_.write_end.close();
  }

  void start(int rank, std::vector<std::string> environment) {
    Pipe out;
    Pipe err;
    Fd nothing;
    // mpirun ends itself and its ranks when nobody reads its output, as after `| head`: here it is read to the end. On
    // a terminal that does not happen, and a line of progress has no end.
    const bool relays_output = rank > 0 || (options_.is_launcher && !stdout_is_terminal());
    if (relays_output) out = make_polled_pipe();
    if (rank > 0 || options_.is_launcher) {
      err = make_polled_pipe();
      nothing = open_null();
    }
    ChildStart child;
    child.words = options_.command;
    child.environment = std::move(environment);
    child.stdin_fd = nothing.get();
    child.stdout_fd = out.write_end.get();
    child.stderr_fd = err.write_end.get();
    // A signal to our whole group must not end the ranks of a launcher before they have been told to save.
    child.leads_group = options_.is_launcher;
    if (!options_.is_launcher) child.kept_fd = exit_notes_.write_end.get();
    child.failure_fd = exec_failures_.write_end.get();
    if (options_.run_here && !options_.is_launcher) child.run = [this] { return options_.run_here(options_.command); };
    ranks_[static_cast<std::size_t>(rank)] = {start_child(child), true};
    if (options_.is_launcher) {
      if (relays_output) relay_.to_stdout(std::move(out.read_end));
      relay_.to_stderr(std::move(err.read_end), "", [this](std::string_view line) { return note_in(line); });
    } else if (rank > 0) {
      const std::string prefix = fmt::format("[rank {}] ", rank);
      relay_.to_stdout(std::move(out.read_end), prefix);
      relay_.to_stderr(std::move(err.read_end), prefix);
    }
  }

  int running() const {
    return static_cast<int>(std::count_if(ranks_.begin(), ranks_.end(), [](const Rank& r) { return r.is_running; }));
  }

  void send_to_all(int number) {
    // A rank that has ended keeps its pid until waitpid(), and then is not running: no stranger gets this.
    for (const Rank& rank : ranks_) {
      if (rank.is_running) ::kill(rank.pid, number);
    }
  }

  /// Waits until something happens, at most until the deadline, and deals with it.
  void turn(std::optional<Clock::time_point> deadline) {
    int timeout = -1;
    if (deadline) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline - Clock::now());
      timeout = static_cast<int>(std::max<long long>(0, left.count()));
    }
    relay_.turn(notes_.fd(), timeout);
    // Of a rank 0 that writes there itself it is known by itself.
    if (options_.is_launcher && relay_.has_lost_output() && !std::exchange(is_loss_told_, true))
      relay_.say("tutti: nobody reads this output any more: the ranks go on without it");
    while (const auto note = notes_.next()) handle(*note);
    for (std::size_t i = 0; i < ranks_.size(); ++i) reap(i);
    look_for_stopped();
    end_what_stays_stopped();
    stop_the_others_in_time();
  }

  void handle(const SignalNote& note) {
    if (note.number == SIGCHLD) {
      // Of several ranks that end while we are asleep, the first is the one the signal is about.
      for (std::size_t i = 0; i < ranks_.size(); ++i) {
        if (ranks_[i].pid == note.about) reap(i);
      }
      return;
    }
    if (note.number == SIGQUIT) {
      std::string text = options_.status();
      if (!text.empty() && text.back() == '\n') text.pop_back();
      relay_.say(text);
      return;
    }
    if (note.number == SIGCONT) {  // we were stopped ourselves, and could not see who went on meanwhile
      for (auto& [pid, stopped] : stopped_) stopped.since = Clock::now();
      return;
    }
    if (stop_signal_ == 0 && note.number != SIGUSR2) stop_signal_ = note.number;
    const bool is_user = note.number == SIGUSR1 || note.number == SIGUSR2;
    if (running() == 0 && !is_user) gives_up_output_ = true;  // nothing else is left to stop
    if (note.number == SIGINT) {
      const auto now = Clock::now();
      if (first_interrupt_ && now - *first_interrupt_ > kSameInterrupt) {
        send_to_all(SIGKILL);
        return;
      }
      if (!first_interrupt_) first_interrupt_ = now;
      if (note.from_terminal && !options_.is_launcher) return;
    }
    if (note.number == SIGTERM && options_.is_launcher && !asked_to_stop_) {
      // Of SIGTERM mpirun makes a second for its ranks to end in, and an exit code of 1.
      asked_to_stop_ = true;
      send_to_all(SIGUSR1);
      return;
    }
    send_to_all(note.number);
  }

  /// Takes the note of a rank's end out of a line; returns what is left to print.
  std::optional<std::string_view> note_in(std::string_view line) {
    const auto note = find_exit_note(line);
    if (!note) return line;
    take(*note);
    if (note->code != 0) {
      if (!first_failure_at_) first_failure_at_ = Clock::now();
      auto& code = note->code == kExitPeerFailed ? noted_follower_ : noted_cause_;
      if (!code) code = note->code;
    }
    if (note->before.empty()) return std::nullopt;
    return note->before;
  }

  void take(const ExitNote& note) {
    if (note.code == 0) has_noted_success_ = true;
    if (note.code == kExitPeerFailed && !culprit_) culprit_ = note.culprit;
  }

  void read_exit_notes() {
    char text[4096];
    for (ssize_t got = 0; (got = ::read(exit_notes_.read_end.get(), text, sizeof text)) > 0;) {
      std::istringstream lines(std::string(text, static_cast<std::size_t>(got)));
      for (std::string line; std::getline(lines, line);)
        if (const auto note = find_exit_note(line)) take(*note);
    }
  }

  void reap(std::size_t rank) {
    const pid_t pid = ranks_[rank].pid;
    int status = 0;
    while (ranks_[rank].is_running && ::waitpid(pid, &status, WNOHANG | WUNTRACED | WCONTINUED) == pid) {
      if (WIFSTOPPED(status)) {
        if (!is_job_control(WSTOPSIG(status))) note_stop(pid, static_cast<int>(rank), WSTOPSIG(status));
        continue;
      }
      note_going_on(pid, WIFCONTINUED(status));
      if (WIFCONTINUED(status)) continue;
      ranks_[rank].is_running = false;
      if (status != 0) note_failure({static_cast<int>(rank), status});
    }
  }

  /// "rank 2 of 3", or the command that starts the ranks.
  std::string name_of(std::optional<int> rank) const {
    if (!rank) return options_.command[0];
    const int ranks = options_.is_launcher ? options_.launched : options_.ranks;
    return ranks > 0 ? fmt::format("rank {} of {}", *rank, ranks) : fmt::format("rank {}", *rank);
  }

  void note_stop(pid_t pid, std::optional<int> rank, int number) {
    if (options_.is_launcher && ranks_[0].pid == pid) rank.reset();
    const auto [entry, is_new] = stopped_.insert({pid, {name_of(rank), rank, Clock::now()}});
    if (!is_new || sent_term_) return;
    relay_.say(fmt::format("{} (pid {}) is stopped ({}){}", entry->second.name, pid,
                           number == 0 ? "by a signal such as SIGSTOP" : fmt::format("SIG{}", ::sigabbrev_np(number)),
                           options_.stop_limit.count() == 0
                               ? ""
                               : fmt::format("; the job ends unless it goes on within {:g} s (kill -CONT {})",
                                             std::chrono::duration<double>(options_.stop_limit).count(), pid)));
  }

  void note_going_on(pid_t pid, bool is_alive) {
    const auto entry = stopped_.find(pid);
    if (entry == stopped_.end()) return;
    if (is_alive && !first_failure_at_) relay_.say(fmt::format("{} (pid {}) goes on", entry->second.name, pid));
    // One that is to blame stays to be named.
    if (!first_failure_at_) stopped_.erase(entry);
  }

  /// Ranks behind a launcher.
  void look_for_stopped() {
    if (!options_.is_launcher || options_.stop_limit.count() == 0 || Clock::now() < next_look_) return;
    next_look_ = Clock::now() + kLookForStopped;
    const auto stopped = stopped_descendants();
    for (const auto& [pid, rank] : stopped)
      if (rank) note_stop(pid, rank, 0);
    std::vector<pid_t> gone;
    for (const auto& [pid, entry] : stopped_)
      if (entry.rank && stopped.count(pid) == 0) gone.push_back(pid);
    for (const pid_t pid : gone) note_going_on(pid, process_stat(pid).has_value());
  }

  void end_what_stays_stopped() {
    if (first_failure_at_ || options_.stop_limit.count() == 0) return;
    for (const auto& [pid, entry] : stopped_) {
      if (Clock::now() - entry.since < options_.stop_limit + kRanksFirst) continue;
      culprit_ = entry.rank;
      is_ended_for_stop_ = true;
      first_failure_at_ = Clock::now() - options_.finish_grace;  // nobody else is about to end
      return;
    }
  }

  void note_failure(const Failure& failure) {
    int reason = 0;
    if (::read(exec_failures_.read_end.get(), &reason, sizeof reason) == sizeof reason) {
      exec_error_ = reason;
      send_to_all(SIGKILL);  // nobody has begun anything worth a last word
    }
    if (!first_failure_at_) first_failure_at_ = Clock::now();
    const bool follows = WIFEXITED(failure.status) && WEXITSTATUS(failure.status) == kExitPeerFailed;
    if (follows && !follower_) follower_ = failure;
    // Whatever a rank does after we have told it to stop is our doing, unless it was crashing already.
    const bool crashed =
        WIFSIGNALED(failure.status) && WTERMSIG(failure.status) != SIGTERM && WTERMSIG(failure.status) != SIGKILL;
    if (!follows && !cause_ && (!sent_term_ || crashed)) cause_ = failure;
  }

  std::optional<Clock::time_point> next_deadline() const {
    if (sent_kill_) return std::nullopt;
    if (!first_failure_at_) {
      if (options_.stop_limit.count() == 0) return std::nullopt;
      std::optional<Clock::time_point> next;
      if (options_.is_launcher) next = next_look_;
      for (const auto& [pid, entry] : stopped_) {
        const auto limit = entry.since + options_.stop_limit + kRanksFirst;
        next = next ? std::min(*next, limit) : limit;
      }
      return next;
    }
    return *first_failure_at_ + options_.finish_grace +
           (sent_term_ ? options_.term_grace : std::chrono::milliseconds(0));
  }

  void stop_the_others_in_time() {
    const auto deadline = next_deadline();
    if (!deadline || Clock::now() < *deadline) return;
    if (options_.is_launcher) {
      // Of SIGTERM an mpirun that waits for a node takes no notice. When it is gone, its daemons end what they run.
      send_to_all(SIGKILL);
      sent_term_ = sent_kill_ = true;
      return;
    }
    send_to_all(sent_term_ ? SIGKILL : SIGTERM);
    if (!sent_term_) send_to_all(SIGCONT);  // one that is stopped gets nothing else
    (sent_term_ ? sent_kill_ : sent_term_) = true;
  }

  /// Says what went wrong, if something did. Returns the exit code.
  int verdict() {
    if (exec_error_ != 0) {
      relay_.say(fmt::format("cannot execute {}: {}", options_.command[0], std::strerror(exec_error_)));
      return kCannotExecute;
    }
    read_exit_notes();
    const auto& failure = cause_ ? cause_ : follower_;
    if (!cause_ && !noted_cause_ && !asked_to_stop_ && (culprit_ || is_ended_for_stop_)) {
      relay_.say(blame());
      return kExitPeerFailed;
    }
    if (options_.is_launcher && (failure || sent_term_)) {
      // What the ranks say of themselves; a rank that was killed could not, but mpirun knows of it.
      // Those that it told to end when one was killed ended on purpose, which is not why.
      const bool was_killed = failure && WIFEXITED(failure->status) && WEXITSTATUS(failure->status) > 128;
      const bool only_followed = was_killed && stop_signal_ == 0 && noted_cause_ == options_.quiet_code;
      if (noted_cause_ && !only_followed) return *noted_cause_;
      if (stop_signal_ == SIGTERM || stop_signal_ == SIGINT || stop_signal_ == SIGHUP) {
        relay_.say(fmt::format("stopped by signal {} ({})", stop_signal_, ::strsignal(stop_signal_)));
        return 128 + stop_signal_;  // what mpirun makes of it is 1
      }
      if (noted_follower_ && sent_term_) return *noted_follower_;
    }
    if (!failure && options_.launched > 0 && !has_noted_success_) {
      relay_.say(
          fmt::format("{} ended without an error, but none of its {} ranks said that it was done: nothing was "
                      "finished. Start it again",
                      options_.command[0], options_.launched));
      return kNothingDone;
    }
    if (!failure) return 0;
    const std::string who =
        options_.is_launcher ? options_.command[0] : fmt::format("rank {} of {}", failure->rank, options_.ranks);
    if (WIFSIGNALED(failure->status)) {
      const int number = WTERMSIG(failure->status);
      relay_.say(fmt::format("{} was killed by signal {} ({})", who, number, ::strsignal(number)));
      return 128 + number;
    }
    const int code = WEXITSTATUS(failure->status);
    const bool is_quiet = code == options_.quiet_code;
    if (options_.is_launcher && code > 128)  // mpirun says nothing of a rank that SIGTERM has ended
      relay_.say(fmt::format("{} ended with exit code {}: a rank was ended by signal {} ({})", who, code, code - 128,
                             ::strsignal(code - 128)));
    else if (is_quiet && follower_ && stop_signal_ == 0)
      relay_.say(fmt::format("{} stopped at a signal that it alone got, and the others could not go on", who));
    if (options_.is_launcher || is_quiet) return code;  // everything has been said
    relay_.say(fmt::format("{} failed: exit code {}{}", who, code,
                           code == kExitPeerFailed ? " (stopped because a peer failed)" : ""));
    return code;
  }

  /// Whom the ranks gave up, and what the kernel knows of it.
  std::string blame() const {
    for (const auto& [pid, entry] : stopped_)
      if (entry.rank == culprit_)
        return fmt::format("{} (pid {}) was stopped by a signal for {:.0f} s: the others gave up waiting for it",
                           entry.name, pid, seconds_since(entry.since));
    return fmt::format("{} did not answer, or did not come: the others gave up waiting for it", name_of(culprit_));
  }

  const LaunchOptions& options_;
  // Without SA_RESTART: a write that blocks gives way to the loop.
  SignalNotes notes_;
  SignalActions ignored_{{SIGPIPE}, ignoring()};  // writes tell
  Pipe exec_failures_;
  Pipe exit_notes_;                 // of ranks that are our children
  std::optional<Orphans> orphans_;  // of a launcher
  LineRelay relay_;                 // of each rank but 0; or of the stderr of a launcher
  std::vector<Rank> ranks_;

  std::optional<Failure> cause_;                     // the first rank that failed by itself
  std::optional<Failure> follower_;                  // the first that stopped because of a peer
  std::optional<int> noted_cause_, noted_follower_;  // the same by exit code, of a launcher's ranks
  std::optional<int> culprit_;                       // whom those that stopped because of a peer blame
  std::map<pid_t, StoppedRank> stopped_;
  bool is_ended_for_stop_ = false;
  Clock::time_point next_look_{};
  std::optional<Clock::time_point> first_failure_at_;
  bool has_noted_success_ = false;
  bool asked_to_stop_ = false;  // a launcher, which passes that on
  bool sent_term_ = false;
  bool sent_kill_ = false;
  int exec_error_ = 0;
  int stop_signal_ = 0;
  std::optional<Clock::time_point> first_interrupt_;
  bool gives_up_output_ = false;
  bool is_loss_told_ = false;
};

}  // namespace

int launch_ranks(const LaunchOptions& options, int* stop_signal) {
  if (options.ranks < 1) throw UsageError("cannot start {} ranks: at least one is needed", options.ranks);
  if (options.threads < 1) throw UsageError("a rank cannot have {} threads: at least one is needed", options.threads);
  if (options.command.empty()) throw UsageError("no command for the ranks to execute");
  ensure_standard_descriptors();
  Launch launch(options);
  const int code = launch.run();
  if (stop_signal != nullptr) *stop_signal = launch.stop_signal();
  return code;
}

}  // namespace tutti
