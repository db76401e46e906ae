#include "netbox/run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>

#include "base/names.h"
#include "base/process.h"
#include "netbox/holder.h"
#include "netbox/mpi_files.h"
#include "netbox/processes.h"
#include "tutti/error.h"

namespace tutti::netbox {
namespace {

constexpr std::size_t kMostChildren = 256;
constexpr int kLookEveryMs = 50;  // for children that have ended while others keep their pipes open

// timeout(1) and others signal the process and then its group: a SIGINT this soon after another is the same one.
constexpr double kSameInterrupt = 0.2;  // seconds

// For the signal handler, which has no other way to know: the children's process groups, 0 where one has ended.
std::array<volatile pid_t, kMostChildren> g_groups = {};
volatile double g_first_interrupt = 0;  // when, on the monotonic clock

void forward(int number) {
  const int saved = errno;
  if (number == SIGINT) {
    timespec now = {};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    const double seconds = static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
    if (g_first_interrupt == 0) {
      g_first_interrupt = seconds;
    } else if (seconds - g_first_interrupt > kSameInterrupt) {
      number = SIGKILL;
    }
  }
  for (const pid_t group : g_groups) {
    if (group > 0) ::kill(-group, number);
  }
  errno = saved;
}

/// One of a child's two outputs, passed on in whole lines.
struct Stream {
  int fd = -1;
  FILE* to = nullptr;
  std::string prefix;
  std::string partial;

  void print(const std::string& line) const {
    fmt::print(to, "{}{}\n", prefix, line);
    std::fflush(to);
  }
  void read_some() {
    std::array<char, 1 << 14> buffer;
    const ssize_t got = ::read(fd, buffer.data(), buffer.size());
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (got <= 0) return finish();
    partial.append(buffer.data(), static_cast<std::size_t>(got));
    std::size_t begin = 0;
    for (std::size_t end = 0; (end = partial.find('\n', begin)) != std::string::npos; begin = end + 1)
      print(partial.substr(begin, end - begin));
    partial.erase(0, begin);
  }
  void finish() {
    if (!partial.empty()) print(partial);
    partial.clear();
    if (fd >= 0) ::close(fd);
    fd = -1;
  }
};

struct Child {
  pid_t pid = 0;
  int status = 0;
  bool is_running = false;
};

[[noreturn]] void become_child(const std::vector<std::string>& words, pid_t parent, int out, int err) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  ::setpgid(0, 0);
  ::dup2(::open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(err, STDERR_FILENO);
  ::execvp(words[0].c_str(), exec_arguments(words).data());
  ::dprintf(STDERR_FILENO, "cannot execute %s: %s\n", words[0].c_str(), std::strerror(errno));
  ::_exit(127);
}

class Group {
 public:
  Group() {
    g_first_interrupt = 0;
    struct sigaction action = {};
    action.sa_handler = forward;
    action.sa_flags = SA_RESTART;
    for (std::size_t i = 0; i < kSignals.size(); ++i) {
      ::sigaction(kSignals[i], &action, &old_[i]);
      // Ignored under nohup, and then it is to stay so.
      if (kSignals[i] == SIGHUP && old_[i].sa_handler == SIG_IGN) ::sigaction(SIGHUP, &old_[i], nullptr);
    }
  }
  ~Group() {
    for (std::size_t i = 0; i < children_.size(); ++i) {
      if (children_[i].is_running) ::kill(-children_[i].pid, SIGKILL);
      reap(i, 0);
    }
    for (std::size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &old_[i], nullptr);
  }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  void start(const std::string& name, const std::vector<std::string>& words) {
    std::array<int, 2> out;
    std::array<int, 2> err;
    if (::pipe2(out.data(), O_CLOEXEC) != 0 || ::pipe2(err.data(), O_CLOEXEC) != 0)
      throw Error("cannot create a pipe: {}", std::strerror(errno));
    std::fflush(nullptr);
    const pid_t parent = ::getpid();
    const pid_t child = ::fork();
    if (child == 0) become_child(words, parent, out[1], err[1]);
    const int reason = errno;
    ::close(out[1]);
    ::close(err[1]);
    for (const auto& [fd, to] : {std::pair(out[0], stdout), std::pair(err[0], stderr)}) {
      ::fcntl(fd, F_SETFL, O_NONBLOCK);
      streams_.push_back({fd, to, "[" + name + "] ", ""});
    }
    if (child < 0) throw Error("cannot start a process: {}", std::strerror(reason));
    ::setpgid(child, child);  // here too: a signal may come before the child is as far
    g_groups[children_.size()] = child;
    children_.push_back({child, 0, true});
  }

  /// Returns the children's statuses, in order.
  std::vector<int> wait() {
    while (is_any_running()) {
      std::vector<pollfd> polled;
      for (const Stream& stream : streams_) polled.push_back({stream.fd, POLLIN, 0});
      ::poll(polled.data(), polled.size(), kLookEveryMs);
      for (std::size_t i = 0; i < streams_.size(); ++i) {
        if (streams_[i].fd >= 0 && polled[i].revents != 0) streams_[i].read_some();
      }
      const bool all_silent =
          std::all_of(streams_.begin(), streams_.end(), [](const Stream& stream) { return stream.fd < 0; });
      for (std::size_t i = 0; i < children_.size(); ++i) reap(i, all_silent ? 0 : WNOHANG);
    }
    for (Stream& stream : streams_) {  // what is in the pipes; a process left behind may hold them open
      if (stream.fd >= 0) stream.read_some();
      stream.finish();
    }
    std::vector<int> statuses;
    for (const Child& child : children_) statuses.push_back(child.status);
    return statuses;
  }

 private:
  bool is_any_running() const {
    return std::any_of(children_.begin(), children_.end(), [](const Child& child) { return child.is_running; });
  }
  void reap(std::size_t i, int how) {
    Child& child = children_[i];
    pid_t got = 0;
    while (child.is_running && (got = ::waitpid(child.pid, &child.status, how)) < 0 && errno == EINTR) continue;
    if (got != child.pid) return;
    child.is_running = false;
    g_groups[i] = 0;
  }

  static constexpr std::array<int, 3> kSignals = {SIGINT, SIGTERM, SIGHUP};
  std::array<struct sigaction, 3> old_;
  std::vector<Child> children_;
  std::vector<Stream> streams_;
};

}  // namespace

std::vector<std::string> inside(const BoxNode& node, const std::vector<std::string>& command) {
  // env -C, since entering a mount namespace leads to its root.
  std::vector<std::string> words = {"nsenter",
                                    "--target",
                                    std::to_string(node.holder),
                                    "--net",
                                    "--uts",
                                    "--mount",
                                    "--",
                                    "env",
                                    "-C",
                                    std::filesystem::current_path().string()};
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

bool is_paused(const BoxNode& node) {
  const std::vector<Process> processes = processes_in(node.net_namespace);
  return std::any_of(processes.begin(), processes.end(),
                     [&](const Process& process) { return process.pid == node.holder && process.is_stopped; });
}

void check_usable(const Box& cluster, const BoxNode& node) {
  const std::string name = cluster.name == "tutti" ? "" : " --name " + cluster.name;
  if (!has_holder(node)) {
    throw Error(
        "{} is down: the process that holds its namespaces ({}) is gone. `tutti cluster up --replace{}` rebuilds "
        "the cluster.",
        node.name, node.holder, name);
  }
  if (is_paused(node)) throw Error("{0} is paused. `tutti cluster resume {0}{1}` lets it go on.", node.name, name);
}

void set_node_environment(const Box& cluster, const std::string& map_by) {
  if (!map_by.empty() && map_by != "node" && map_by != "slot")
    throw UsageError(unknown_name("mapping", map_by, {"node", "slot"}));
  for (const auto& [name, value] : node_environment(cluster, map_by == "node")) {
    const bool is_asked_for = name == "OMPI_MCA_rmaps_base_mapping_policy" && !map_by.empty();
    const bool is_ours = name.rfind("TUTTI_", 0) == 0;
    ::setenv(name.c_str(), value.c_str(), is_asked_for || is_ours ? 1 : 0);
  }
}

int run_in_all(const std::vector<BoxNode>& nodes, const std::vector<std::string>& command) {
  if (nodes.size() > kMostChildren) throw Error("{} nodes are too many for one command", nodes.size());
  Group group;
  for (const BoxNode& node : nodes) group.start(node.name, inside(node, command));
  const std::vector<int> statuses = group.wait();
  int verdict = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const int status = statuses[i];
    if (status == 0) continue;
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    fmt::print(stderr, "{} failed: {}\n", nodes[i].name,
               WIFEXITED(status) ? fmt::format("exit code {}", code) : ::strsignal(WTERMSIG(status)));
    if (verdict == 0) verdict = code;
  }
  return verdict;
}

}  // namespace tutti::netbox
