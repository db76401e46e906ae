#include "netbox/run.h"

#include <fmt/format.h>
#include <poll.h>
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

#include "base/fd.h"
#include "base/names.h"
#include "base/process.h"
#include "base/signals.h"
#include "netbox/holder.h"
#include "netbox/mpi_files.h"
#include "netbox/processes.h"
#include "tutti/error.h"

namespace tutti::netbox {
namespace {

constexpr std::size_t kMostChildren = 256;
constexpr int kLookEveryMs = 50;  // for children that have ended while others keep their pipes open

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
    } else if (seconds - g_first_interrupt > std::chrono::duration<double>(kSameInterrupt).count()) {
      number = SIGKILL;
    }
  }
  for (const pid_t group : g_groups) {
    if (group > 0) ::kill(-group, number);
  }
  errno = saved;
}

struct sigaction forwarding() {
  struct sigaction action = {};
  action.sa_handler = forward;
  action.sa_flags = SA_RESTART;
  return action;
}

/// One of a child's two outputs, passed on in whole lines.
struct Stream {
  Fd fd;
  FILE* to = nullptr;
  std::string prefix;
  std::string partial;

  void print(const std::string& line) const {
    fmt::print(to, "{}{}\n", prefix, line);
    std::fflush(to);
  }
  void read_some() {
    std::array<char, 1 << 14> buffer;
    const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
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
    fd.close();
  }
};

struct Child {
  pid_t pid = 0;
  int status = 0;
  bool is_running = false;
};

class Group {
 public:
  Group() { g_first_interrupt = 0; }
  ~Group() {
    for (std::size_t i = 0; i < children_.size(); ++i) {
      if (children_[i].is_running) ::kill(-children_[i].pid, SIGKILL);
      reap(i, 0);
    }
  }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  void start(const std::string& name, const std::vector<std::string>& words) {
    const Fd nothing = open_null();
    Pipe out = make_polled_pipe();
    Pipe err = make_polled_pipe();
    ChildStart start;
    start.words = words;
    start.stdin_fd = nothing.get();
    start.stdout_fd = out.write_end.get();
    start.stderr_fd = err.write_end.get();
    start.leads_group = true;
    const pid_t child = start_child(start);
    streams_.push_back({std::move(out.read_end), stdout, "[" + name + "] ", ""});
    streams_.push_back({std::move(err.read_end), stderr, "[" + name + "] ", ""});
    g_groups[children_.size()] = child;
    children_.push_back({child, 0, true});
  }

  /// Returns the children's statuses, in order.
  std::vector<int> wait() {
    while (is_any_running()) {
      std::vector<pollfd> polled;
      for (const Stream& stream : streams_) polled.push_back({stream.fd.get(), POLLIN, 0});
      ::poll(polled.data(), polled.size(), kLookEveryMs);
      for (std::size_t i = 0; i < streams_.size(); ++i) {
        if (streams_[i].fd && polled[i].revents != 0) streams_[i].read_some();
      }
      const bool all_silent =
          std::all_of(streams_.begin(), streams_.end(), [](const Stream& stream) { return !stream.fd; });
      for (std::size_t i = 0; i < children_.size(); ++i) reap(i, all_silent ? 0 : WNOHANG);
    }
    for (Stream& stream : streams_) {  // what is in the pipes; a process left behind may hold them open
      if (stream.fd) stream.read_some();
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

  SignalActions signals_{{SIGINT, SIGTERM, SIGHUP}, forwarding()};
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
    const int code = exit_code_of(status);
    fmt::print(stderr, "{} failed: {}\n", nodes[i].name,
               WIFEXITED(status) ? fmt::format("exit code {}", code) : ::strsignal(WTERMSIG(status)));
    if (verdict == 0) verdict = code;
  }
  return verdict;
}

}  // namespace tutti::netbox
