#include "netbox/run.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>

#include "base/clock.h"
#include "base/fd.h"
#include "base/line_relay.h"
#include "base/names.h"
#include "base/process.h"
#include "base/signals.h"
#include "netbox/holder.h"
#include "netbox/mpi_files.h"
#include "netbox/processes.h"
#include "tutti/error.h"

namespace tutti::netbox {
namespace {

struct Child {
  pid_t pid = 0;
  int status = 0;
  bool is_running = false;
};

/// Commands that run at once, each in a process group of its own, and end with this.
class Group {
 public:
  Group() = default;
  ~Group() {
    send_to_all(SIGKILL);
    for (const Child& child : children_) {
      if (child.is_running) wait_for_child(child.pid);
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
    children_.push_back({start_child(start), 0, true});
    relay_.to_stdout(std::move(out.read_end), "[" + name + "] ");
    relay_.to_stderr(std::move(err.read_end), "[" + name + "] ");
  }

  /// Returns the children's statuses, in order.
  std::vector<int> wait() {
    while (is_any_running()) turn();
    relay_.finish();
    std::vector<int> statuses;
    for (const Child& child : children_) statuses.push_back(child.status);
    return statuses;
  }

  void say(const std::string& line) { relay_.say(line); }
  /// Passes on what is left to print, unless a signal comes first.
  void pass_on_all() {
    while (!relay_.has_passed_on_all() && !is_told_to_stop_) turn();
  }

 private:
  bool is_any_running() const {
    return std::any_of(children_.begin(), children_.end(), [](const Child& child) { return child.is_running; });
  }

  void send_to_all(int number) const {
    for (const Child& child : children_) {
      if (child.is_running) ::kill(-child.pid, number);
    }
  }

  void turn() {
    relay_.turn(notes_.fd(), -1);
    while (const auto note = notes_.next()) {
      if (note->number != SIGCHLD) forward(note->number);
    }
    for (Child& child : children_) {
      if (child.is_running && ::waitpid(child.pid, &child.status, WNOHANG) == child.pid) child.is_running = false;
    }
  }

  void forward(int number) {
    is_told_to_stop_ = !is_any_running();  // nothing is left to stop but the wait for a reader
    if (number == SIGINT && first_interrupt_ && Clock::now() - *first_interrupt_ > kSameInterrupt) number = SIGKILL;
    if (number == SIGINT && !first_interrupt_) first_interrupt_ = Clock::now();
    send_to_all(number);
  }

  SignalNotes notes_{{SIGINT, SIGTERM, SIGHUP, SIGCHLD}, 0};
  LineRelay relay_;
  std::vector<Child> children_;
  std::optional<Clock::time_point> first_interrupt_;
  bool is_told_to_stop_ = false;
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
  Group group;
  for (const BoxNode& node : nodes) group.start(node.name, inside(node, command));
  const std::vector<int> statuses = group.wait();
  int verdict = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const int status = statuses[i];
    if (status == 0) continue;
    const int code = exit_code_of(status);
    group.say(fmt::format("{} failed: {}", nodes[i].name,
                          WIFEXITED(status) ? fmt::format("exit code {}", code) : ::strsignal(WTERMSIG(status))));
    if (verdict == 0) verdict = code;
  }
  group.pass_on_all();
  return verdict;
}

}  // namespace tutti::netbox
