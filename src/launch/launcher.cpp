#include "launch/launcher.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/exit_note.h"
#include "base/fd.h"
#include "base/line_relay.h"
#include "base/process.h"
#include "base/signals.h"
#include "launch/orphans.h"
#include "launch/rank_environment.h"
#include "tutti/error.h"

// One thread and one poll() loop. Everything that happens arrives through a descriptor: signals (SIGCHLD among them)
// through a pipe that their handler writes to, the ranks' output through a pipe each, a failed exec through a pipe that
// closes by itself when exec succeeds. Nothing here waits for anything else: a reader that stops reading our output
// must not keep a signal from being forwarded.

namespace tutti {
namespace {

// What a launcher leaves behind, among it the ssh of a node that cannot be reached, may take so long to end by itself.
constexpr std::chrono::milliseconds kOrphanGrace{1000};

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

class Launch {
 public:
  explicit Launch(const LaunchOptions& options)
      : options_(options), exec_failures_(make_polled_pipe()), ranks_(static_cast<std::size_t>(options.ranks)) {
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
    if (orphans_) Orphans::end_all(kOrphanGrace);
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
        start(rank, options_.is_launcher ? own_environment() : rank_environment(options_, rank, job));
      } catch (const Error& error) {
        throw Error("cannot start rank {} of {}: {}", rank, options_.ranks, error.what());
      }
    }
    exec_failures_.write_end.close();
  }

  void start(int rank, std::vector<std::string> environment) {
    Pipe out;
    Pipe err;
    Fd nothing;
    if (rank > 0) out = make_polled_pipe();
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
    child.failure_fd = exec_failures_.write_end.get();
    ranks_[static_cast<std::size_t>(rank)] = {start_child(child), true};
    if (options_.is_launcher) {
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
    while (const auto note = notes_.next()) handle(*note);
    for (std::size_t i = 0; i < ranks_.size(); ++i) reap(i);
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
    if (!first_failure_at_) first_failure_at_ = Clock::now();
    auto& code = note->code == kExitPeerFailed ? noted_follower_ : noted_cause_;
    if (!code) code = note->code;
    if (note->before.empty()) return std::nullopt;
    return note->before;
  }

  void reap(std::size_t rank) {
    int status = 0;
    if (!ranks_[rank].is_running || ::waitpid(ranks_[rank].pid, &status, WNOHANG) != ranks_[rank].pid) return;
    ranks_[rank].is_running = false;
    if (status != 0) note_failure({static_cast<int>(rank), status});
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
    if (!first_failure_at_ || sent_kill_) return std::nullopt;
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
    (sent_term_ ? sent_kill_ : sent_term_) = true;
  }

  /// Says what went wrong, if something did. Returns the exit code.
  int verdict() {
    if (exec_error_ != 0) {
      relay_.say(fmt::format("cannot execute {}: {}", options_.command[0], std::strerror(exec_error_)));
      return kCannotExecute;
    }
    const auto& failure = cause_ ? cause_ : follower_;
    if (options_.is_launcher && (failure || sent_term_)) {
      // What the ranks say of themselves; a rank that was killed could not, but mpirun knows of it.
      if (noted_cause_) return *noted_cause_;
      if (asked_to_stop_) return 128 + SIGTERM;
      if (noted_follower_ && sent_term_) return *noted_follower_;
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
    if (options_.is_launcher || code == options_.quiet_code) return code;  // everything has been said
    relay_.say(fmt::format("{} failed: exit code {}{}", who, code,
                           code == kExitPeerFailed ? " (stopped because a peer failed)" : ""));
    return code;
  }

  const LaunchOptions& options_;
  // Without SA_RESTART: a write that blocks gives way to the loop.
  SignalNotes notes_{{SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD}, 0};
  SignalActions ignored_{{SIGPIPE}, ignoring()};  // writes tell
  Pipe exec_failures_;
  std::optional<Orphans> orphans_;  // of a launcher
  LineRelay relay_;                 // of each rank but 0; or of the stderr of a launcher
  std::vector<Rank> ranks_;

  std::optional<Failure> cause_;                     // the first rank that failed by itself
  std::optional<Failure> follower_;                  // the first that stopped because of a peer
  std::optional<int> noted_cause_, noted_follower_;  // the same by exit code, of a launcher's ranks
  std::optional<Clock::time_point> first_failure_at_;
  bool asked_to_stop_ = false;  // a launcher, which passes that on
  bool sent_term_ = false;
  bool sent_kill_ = false;
  int exec_error_ = 0;
  int stop_signal_ = 0;
  std::optional<Clock::time_point> first_interrupt_;
  bool gives_up_output_ = false;
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
