#include "sweep/child.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <string_view>

#include "base/clock.h"
#include "tutti/error.h"

namespace tutti::sweep {
namespace {

constexpr int kTickMilliseconds = 250;
constexpr int kCannotExecute = 127;

volatile std::sig_atomic_t g_first = 0;
volatile std::sig_atomic_t g_count = 0;
volatile std::sig_atomic_t g_wake = -1;  // where the handler writes

void note(int number) {
  const int saved = errno;
  if (number != SIGCHLD) {
    if (g_first == 0) g_first = number;
    g_count = g_count + 1;
  }
  [[maybe_unused]] const ssize_t put = ::write(g_wake, "", 1);
  errno = saved;
}

/// What tells a process that mpirun, srun or another Tutti has started it: true of us perhaps, but not of a cell.
bool is_of_a_launcher(std::string_view name) {
  for (const std::string_view prefix :
       {"TUTTI_RANK", "TUTTI_SIZE", "TUTTI_LOCAL_", "TUTTI_NODE", "TUTTI_JOB", "TUTTI_THREADS", "OMPI_COMM_WORLD_",
        "PMI_", "PMIX_", "SLURM_STEP", "SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID"})
    if (name.substr(0, prefix.size()) == prefix) return true;
  return false;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> all;
  all.reserve(strings.size() + 1);
  for (std::string& text : strings) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

pid_t start(const ChildOptions& options) {
  std::vector<std::string> words = options.words;
  std::vector<std::string> environment;
  for (char** variable = environ; *variable != nullptr; ++variable)
    if (!is_of_a_launcher(*variable)) environment.emplace_back(*variable);
  const std::vector<char*> argv = pointers(words);
  const std::vector<char*> envp = pointers(environment);
  const Descriptor log(::open(options.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (log.get() < 0) throw Error("cannot open {}: {}", options.log.string(), std::strerror(errno));
  const Descriptor nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const pid_t parent = ::getpid();

  // No signal between fork and exec: our handlers in the child would write to our pipe.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t child = ::fork();
  if (child == 0) {
    // Only calls that are safe in the child of a process with threads, up to exec.
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, options.death_signal);
    if (::getppid() != parent) ::_exit(1);  // it died before it could be told to tell us
    ::dup2(nothing.get(), STDIN_FILENO);
    ::dup2(log.get(), STDOUT_FILENO);
    ::dup2(log.get(), STDERR_FILENO);
    if (options.keep_fd >= 0) ::fcntl(options.keep_fd, F_SETFD, 0);
    struct sigaction standard = {};
    standard.sa_handler = SIG_DFL;
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) ::sigaction(number, &standard, nullptr);
    sigset_t none;
    sigemptyset(&none);
    ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
    ::execvpe(argv[0], argv.data(), envp.data());
    static constexpr char kText[] = "tutti: cannot execute the program of the cell\n";
    [[maybe_unused]] const ssize_t put = ::write(STDERR_FILENO, kText, sizeof kText - 1);
    ::_exit(kCannotExecute);
  }
  const int reason = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (child < 0)
    throw Error("cannot start a cell: {} (a limit on processes or memory; see ulimit -u)", std::strerror(reason));
  ::setpgid(child, child);  // whoever is first
  return child;
}

/// Whether it has ended. It keeps its number, and so its group, until it is waited for.
bool has_ended(pid_t child) {
  siginfo_t info = {};
  return ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == child;
}

}  // namespace

StopSignals::StopSignals() {
  if (::pipe2(pipe_, O_CLOEXEC | O_NONBLOCK) != 0) throw Error("cannot create a pipe: {}", std::strerror(errno));
  g_first = 0;
  g_count = 0;
  g_wake = pipe_[1];
  struct sigaction action = {};
  action.sa_handler = note;
  action.sa_flags = SA_RESTART;
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) {
    struct sigaction old = {};
    ::sigaction(number, nullptr, &old);
    if (number == SIGHUP && old.sa_handler == SIG_IGN) continue;  // nohup
    ::sigaction(number, &action, nullptr);
    replaced_.emplace_back(number, old);
  }
}

StopSignals::~StopSignals() {
  for (const auto& [number, old] : replaced_) ::sigaction(number, &old, nullptr);
  g_wake = -1;
  ::close(pipe_[0]);
  ::close(pipe_[1]);
}

int StopSignals::first() const { return g_first; }
int StopSignals::count() const { return g_count; }

void StopSignals::wait(int milliseconds) const {
  pollfd polled{pipe_[0], POLLIN, 0};
  if (::poll(&polled, 1, milliseconds) <= 0) return;
  char buffer[64];
  while (::read(pipe_[0], buffer, sizeof buffer) > 0) continue;
}

ChildResult run_child(const ChildOptions& options, const StopSignals& signals, const std::function<void()>& tick) {
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
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  if (result.exit_code == 0) result.was_stopped = result.timed_out = false;  // it was quicker
  return result;
}

}  // namespace tutti::sweep
