#include "cli/launcher.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <ctime>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string_view>
#include <utility>

#include "base/error.h"

// One thread and one poll() loop. Everything that happens arrives through a descriptor: signals (SIGCHLD among them)
// through a pipe that their handler writes to, the ranks' output through a pipe each, a failed exec through a pipe that
// closes by itself when exec succeeds. Nothing here waits for anything else: a reader that stops reading our output
// must not keep a signal from being forwarded.

namespace tutti {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kForwarded[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};
// timeout(1) and others signal the process and then its group: a SIGINT this soon after another is the same one.
constexpr std::chrono::milliseconds kSameInterrupt{200};
constexpr std::size_t kReadBytes = 1 << 16;
constexpr std::size_t kMaxQueued = 1 << 20;  // of output not yet written; the ranks' writes wait beyond that
constexpr std::size_t kMaxLine = 16 << 20;   // what is longer is printed in pieces
constexpr int kCannotExecute = 127;

class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() { close(); }
  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

 private:
  int fd_;
};

struct Pipe {
  Descriptor read_end;  // does not block
  Descriptor write_end;
};

void do_not_block(int fd) { ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK); }

Pipe make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw Error("cannot create a pipe: {}", std::strerror(errno));
  Pipe pipe{Descriptor(ends[0]), Descriptor(ends[1])};
  do_not_block(ends[0]);
  return pipe;
}

/// Without descriptors 0 to 2 our pipes would get these numbers and be mistaken for stdin, stdout and stderr.
void ensure_standard_descriptors() {
  for (int fd = 0; fd <= 2; ++fd) {
    if (::fcntl(fd, F_GETFD) < 0) ::open("/dev/null", O_RDWR);  // takes the lowest free number, which is fd
  }
}

// ---- signals ----

struct SignalNote {
  int number;
  bool from_terminal;  // the kernel has sent it to the whole foreground group
  pid_t about;         // SIGCHLD: who has ended
};

volatile sig_atomic_t g_note_fd = -1;  // where the handler writes; a handler has no other way to know

void note_signal(int number, siginfo_t* info, void*) {
  const int saved = errno;
  const SignalNote note{number, info->si_code == SI_KERNEL, info->si_pid};
  // When the pipe is full the loop is about to wake up anyway, and finds ended children without being told.
  [[maybe_unused]] const ssize_t put = ::write(g_note_fd, &note, sizeof note);
  errno = saved;
}

/// While it lives, signals arrive as notes in a pipe. Handlers rather than signalfd: with that, a thread some library
/// has started, and that does not block these signals, would get them with their default action.
class SignalNotes {
 public:
  SignalNotes() : pipe_(make_pipe()) {
    do_not_block(pipe_.write_end.get());
    g_note_fd = pipe_.write_end.get();
    struct sigaction hangup = {};
    ::sigaction(SIGHUP, nullptr, &hangup);
    ignores_hangup_ = hangup.sa_handler == SIG_IGN;  // nohup: it is to stay ignored, here and in the ranks
    struct sigaction note = {};
    note.sa_sigaction = note_signal;
    note.sa_flags = SA_SIGINFO;  // without SA_RESTART: a write that blocks gives way to the loop
    for (const int number : kForwarded) {
      if (number != SIGHUP || !ignores_hangup_) replace(number, note);
    }
    replace(SIGCHLD, note);
    struct sigaction ignore = {};
    ignore.sa_handler = SIG_IGN;
    replace(SIGPIPE, ignore);  // writes tell
    // Whoever started us may have blocked some.
    sigset_t open;
    sigemptyset(&open);
    for (const auto& [number, old] : replaced_) sigaddset(&open, number);
    ::pthread_sigmask(SIG_UNBLOCK, &open, &old_mask_);
  }
  SignalNotes(const SignalNotes&) = delete;
  SignalNotes& operator=(const SignalNotes&) = delete;
  ~SignalNotes() {
    for (const auto& [number, old] : replaced_) ::sigaction(number, &old, nullptr);
    ::pthread_sigmask(SIG_SETMASK, &old_mask_, nullptr);
    g_note_fd = -1;
  }

  int fd() const { return pipe_.read_end.get(); }
  bool ignores_hangup() const { return ignores_hangup_; }

  std::optional<SignalNote> next() const {
    SignalNote note;
    while (true) {
      const ssize_t got = ::read(fd(), &note, sizeof note);
      if (got == sizeof note) return note;
      if (got < 0 && errno == EINTR) continue;
      return std::nullopt;
    }
  }

 private:
  void replace(int number, const struct sigaction& action) {
    struct sigaction old = {};
    ::sigaction(number, &action, &old);
    replaced_.emplace_back(number, old);
  }

  Pipe pipe_;
  bool ignores_hangup_ = false;
  std::vector<std::pair<int, struct sigaction>> replaced_;
  sigset_t old_mask_ = {};
};

// ---- output ----

/// Our stdout or stderr, written to only when it takes something.
class Sink {
 public:
  explicit Sink(int fd) : fd_(fd), is_terminal_(::isatty(fd) == 1) {}
  int fd() const { return fd_; }
  bool is_empty() const { return next_ == queue_.size(); }
  std::size_t queued() const { return queue_.size() - next_; }

  void add_line(std::string_view prefix, std::string_view line) {
    if (is_closed_) return;
    if (is_terminal_) queue_ += "\r\x1b[K";  // rank 0 may be showing a progress line there
    queue_ += prefix;
    queue_ += line;
    queue_ += '\n';
  }

  /// Call when poll() says that it takes something.
  void write_some() {
    // A pipe that poll() calls writable takes PIPE_BUF bytes at once, whole. Of those, whole lines if possible: rank 0
    // writes to the same place.
    std::string_view piece = std::string_view(queue_).substr(next_, PIPE_BUF);
    if (const auto end = piece.rfind('\n'); end != std::string_view::npos) piece = piece.substr(0, end + 1);
    const ssize_t put = ::write(fd_, piece.data(), piece.size());
    if (put < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (put < 0) {  // nobody reads it any more; rank 0 decides whether that matters
      is_closed_ = true;
      drop();
      return;
    }
    next_ += static_cast<std::size_t>(put);
    if (is_empty()) {
      drop();
    } else if (next_ > kMaxQueued) {
      queue_.erase(0, std::exchange(next_, 0));
    }
  }

  void drop() {
    queue_.clear();
    next_ = 0;
  }

 private:
  int fd_;
  bool is_terminal_;
  bool is_closed_ = false;
  std::string queue_;
  std::size_t next_ = 0;  // of queue_; what comes before is written
};

/// What one rank writes to its stdout or stderr.
class Stream {
 public:
  Stream(Descriptor fd, std::string prefix, Sink& sink)
      : fd_(std::move(fd)), prefix_(std::move(prefix)), sink_(&sink) {}
  const Sink& sink() const { return *sink_; }
  int fd() const { return fd_.get(); }
  bool is_open() const { return fd_.is_open(); }

  /// Returns the number of bytes taken; 0 when there are none now or, with is_open() then false, no more.
  std::size_t read_some() {
    char buffer[kReadBytes];
    ssize_t got = 0;
    do got = ::read(fd_.get(), buffer, sizeof buffer);
    while (got < 0 && errno == EINTR);
    if (got > 0) {
      take({buffer, static_cast<std::size_t>(got)});
      return static_cast<std::size_t>(got);
    }
    if (got == 0 || errno != EAGAIN) finish();
    return 0;
  }

  /// Prints what is left of a last line without an end.
  void finish() {
    if (!partial_.empty()) pass_on();
    fd_.close();
  }

 private:
  void take(std::string_view text) {
    for (auto end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
      if (partial_.empty()) {
        sink_->add_line(prefix_, text.substr(0, end));
      } else {
        partial_ += text.substr(0, end);
        pass_on();
      }
      text.remove_prefix(end + 1);
    }
    partial_ += text;
    if (partial_.size() >= kMaxLine) pass_on();
  }

  void pass_on() {
    sink_->add_line(prefix_, partial_);
    partial_.clear();
  }

  Descriptor fd_;
  std::string prefix_;
  Sink* sink_;  // outlives this
  std::string partial_;
};

// ---- the ranks ----

/// Strings as exec wants them.
class StringArray {
 public:
  explicit StringArray(std::vector<std::string> strings) : strings_(std::move(strings)) {
    for (std::string& text : strings_) pointers_.push_back(text.data());
    pointers_.push_back(nullptr);
  }
  StringArray(const StringArray&) = delete;
  StringArray& operator=(const StringArray&) = delete;
  char* const* get() const { return pointers_.data(); }

 private:
  std::vector<std::string> strings_;
  std::vector<char*> pointers_;
};

std::string make_job_name() {
  std::random_device random;
  return fmt::format("{}-{:x}-{:08x}", ::getpid(), static_cast<unsigned long long>(std::time(nullptr)), random());
}

/// Our environment with a rank's own variables.
std::vector<std::string> rank_environment(const LaunchOptions& options, int rank, const std::string& job) {
  const std::string size = std::to_string(options.ranks);
  const std::string threads = std::to_string(options.threads);
  const std::map<std::string, std::string, std::less<>> own = {
      {"TUTTI_RANK", std::to_string(rank)},
      {"TUTTI_SIZE", size},
      {"TUTTI_LOCAL_RANK", std::to_string(rank)},
      {"TUTTI_LOCAL_SIZE", size},
      {"TUTTI_NODE", "0"},
      {"TUTTI_NODES", "1"},
      {"TUTTI_JOB", job},
      {"TUTTI_THREADS", threads},
      {"OMP_NUM_THREADS", threads},
      {"OPENBLAS_NUM_THREADS", threads},
      {"MKL_NUM_THREADS", threads},
  };
  std::vector<std::string> environment;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    if (own.find(text.substr(0, text.find('='))) == own.end()) environment.emplace_back(text);
  }
  for (const auto& [name, value] : own) environment.push_back(fmt::format("{}={}", name, value));
  return environment;
}

std::vector<std::string> own_environment() {
  std::vector<std::string> environment;
  for (char** variable = environ; *variable != nullptr; ++variable) environment.emplace_back(*variable);
  return environment;
}

struct Rank {
  pid_t pid = 0;
  bool is_running = false;
};

class Launch {
 public:
  explicit Launch(const LaunchOptions& options)
      : options_(options),
        out_(STDOUT_FILENO),
        err_(STDERR_FILENO),
        exec_failures_(make_pipe()),
        ranks_(static_cast<std::size_t>(options.ranks)) {}
  Launch(const Launch&) = delete;
  Launch& operator=(const Launch&) = delete;

  /// Leaves no rank behind, whatever happened.
  ~Launch() {
    send_to_all(SIGKILL);
    for (Rank& rank : ranks_) {
      while (rank.is_running && ::waitpid(rank.pid, nullptr, 0) < 0 && errno == EINTR) continue;
    }
  }

  int run() {
    start_all();
    while (running() > 0) turn(next_deadline());
    finish_output();
    const int code = verdict();
    while ((!out_.is_empty() || !err_.is_empty()) && !gives_up_output_) turn(std::nullopt);
    return code;
  }

 private:
  struct Failure {
    int rank;
    int status;  // as waitpid() gives it
  };

  void start_all() {
    const std::string job = make_job_name();
    const StringArray arguments(options_.command);
    for (int rank = 0; rank < options_.ranks; ++rank) {
      try {
        start(rank, arguments,
              StringArray(options_.is_launcher ? own_environment() : rank_environment(options_, rank, job)));
      } catch (const Error& error) {
        throw Error("cannot start rank {} of {}: {}", rank, options_.ranks, error.what());
      }
    }
    exec_failures_.write_end.close();
  }

  void start(int rank, const StringArray& arguments, const StringArray& environment) {
    Pipe out;
    Pipe err;
    Descriptor nothing;
    if (rank > 0) {
      out = make_pipe();
      err = make_pipe();
      nothing = Descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
      if (!nothing.is_open()) throw Error("cannot open /dev/null: {}", std::strerror(errno));
    }
    const pid_t parent = ::getpid();

    // No signal between fork and exec: our handlers in the child would write to our pipe.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    const pid_t child = ::fork();
    if (child == 0) {
      // Only calls that are safe in the child of a process with threads, up to exec.
      if (rank > 0) {
        ::dup2(nothing.get(), STDIN_FILENO);
        ::dup2(out.write_end.get(), STDOUT_FILENO);
        ::dup2(err.write_end.get(), STDERR_FILENO);
      }
      become(parent, arguments, environment);
    }
    const int reason = errno;
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (child < 0) throw Error("{} (a limit on processes or memory; see ulimit -u)", std::strerror(reason));

    ranks_[static_cast<std::size_t>(rank)] = {child, true};
    if (rank > 0) {
      const std::string prefix = fmt::format("[rank {}] ", rank);
      streams_.emplace_back(std::move(out.read_end), prefix, out_);
      streams_.emplace_back(std::move(err.read_end), prefix, err_);
    }
  }

  [[noreturn]] void become(pid_t parent, const StringArray& arguments, const StringArray& environment) const {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);  // it died before it could be told to tell us
    struct sigaction standard = {};
    standard.sa_handler = SIG_DFL;
    for (int number = 1; number < NSIG; ++number) {
      if (number != SIGHUP || !notes_.ignores_hangup()) ::sigaction(number, &standard, nullptr);
    }
    sigset_t none;
    sigemptyset(&none);
    ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
    ::execvpe(arguments.get()[0], arguments.get(), environment.get());
    const int reason = errno;
    [[maybe_unused]] const ssize_t put = ::write(exec_failures_.write_end.get(), &reason, sizeof reason);
    ::_exit(kCannotExecute);
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
    std::vector<pollfd> polled = {{notes_.fd(), POLLIN, 0}};
    for (const Sink* sink : {&out_, &err_}) polled.push_back({sink->is_empty() ? -1 : sink->fd(), POLLOUT, 0});
    for (const Stream& stream : streams_) {
      polled.push_back({stream.sink().queued() < kMaxQueued ? stream.fd() : -1, POLLIN, 0});
    }
    int timeout = -1;
    if (deadline) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline - Clock::now());
      timeout = static_cast<int>(std::max<long long>(0, left.count()));
    }
    if (::poll(polled.data(), polled.size(), timeout) < 0) {
      if (errno != EINTR) throw Error("poll failed: {}", std::strerror(errno));
      for (pollfd& entry : polled) entry.revents = 0;
    }

    while (const auto note = notes_.next()) handle(*note);
    for (std::size_t i = 0; i < ranks_.size(); ++i) reap(i);
    for (std::size_t i = 0; i < streams_.size(); ++i) {
      if (polled[3 + i].revents != 0) streams_[i].read_some();
    }
    if (polled[1].revents != 0) out_.write_some();
    if (polled[2].revents != 0) err_.write_some();
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
    const bool is_user = note.number == SIGUSR1 || note.number == SIGUSR2;
    if (running() == 0 && !is_user) gives_up_output_ = true;  // nothing else is left to stop
    if (note.number == SIGINT) {
      const auto now = Clock::now();
      if (first_interrupt_ && now - *first_interrupt_ > kSameInterrupt) {
        send_to_all(SIGKILL);
        return;
      }
      if (!first_interrupt_) first_interrupt_ = now;
      if (note.from_terminal) return;
    }
    send_to_all(note.number);
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
    send_to_all(sent_term_ ? SIGKILL : SIGTERM);
    (sent_term_ ? sent_kill_ : sent_term_) = true;
  }

  /// Takes what the ranks have left in their pipes. Only that: a process that a rank has left behind may hold the other
  /// end open, and even go on writing.
  void finish_output() {
    constexpr std::size_t kMaxPipe = 1 << 20;
    for (Stream& stream : streams_) {
      std::size_t taken = 0;
      while (stream.is_open() && taken < kMaxPipe) {
        const std::size_t got = stream.read_some();
        if (got == 0) break;
        taken += got;
      }
      stream.finish();
    }
    streams_.clear();
  }

  /// Says what went wrong, if something did. Returns the exit code.
  int verdict() {
    if (exec_error_ != 0) {
      err_.add_line("", fmt::format("cannot execute {}: {}", options_.command[0], std::strerror(exec_error_)));
      return kCannotExecute;
    }
    const auto& failure = cause_ ? cause_ : follower_;
    if (!failure) return 0;
    const std::string who =
        options_.is_launcher ? options_.command[0] : fmt::format("rank {} of {}", failure->rank, options_.ranks);
    if (WIFSIGNALED(failure->status)) {
      const int number = WTERMSIG(failure->status);
      err_.add_line("", fmt::format("{} was killed by signal {} ({})", who, number, ::strsignal(number)));
      return 128 + number;
    }
    const int code = WEXITSTATUS(failure->status);
    if (options_.is_launcher || code == options_.quiet_code) return code;  // everything has been said
    err_.add_line("", fmt::format("{} failed: exit code {}{}", who, code,
                                  code == kExitPeerFailed ? " (stopped because a peer failed)" : ""));
    return code;
  }

  const LaunchOptions& options_;
  SignalNotes notes_;
  Sink out_;
  Sink err_;
  Pipe exec_failures_;
  std::vector<Stream> streams_;  // two for each rank but 0
  std::vector<Rank> ranks_;

  std::optional<Failure> cause_;     // the first rank that failed by itself
  std::optional<Failure> follower_;  // the first that stopped because of a peer
  std::optional<Clock::time_point> first_failure_at_;
  bool sent_term_ = false;
  bool sent_kill_ = false;
  int exec_error_ = 0;
  std::optional<Clock::time_point> first_interrupt_;
  bool gives_up_output_ = false;
};

}  // namespace

int launch_ranks(const LaunchOptions& options) {
  if (options.ranks < 1) throw UsageError("cannot start {} ranks: at least one is needed", options.ranks);
  if (options.threads < 1) throw UsageError("a rank cannot have {} threads: at least one is needed", options.threads);
  if (options.command.empty()) throw UsageError("no command for the ranks to execute");
  ensure_standard_descriptors();
  return Launch(options).run();
}

}  // namespace tutti
