#include "netbox/processes.h"

#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/proc_files.h"
#include "tutti/error.h"

namespace tutti::netbox {
namespace {

constexpr double kPatience = 5;  // seconds
constexpr std::chrono::milliseconds kBetweenLooks{5};

using NamespaceId = std::pair<dev_t, ino_t>;

std::optional<NamespaceId> namespace_id(const std::string& path) {
  struct stat found = {};
  if (::stat(path.c_str(), &found) != 0) return std::nullopt;
  return NamespaceId(found.st_dev, found.st_ino);
}

std::optional<NamespaceId> id_of_named(const std::string& name) { return namespace_id("/run/netns/" + name); }
std::optional<NamespaceId> id_of_process(pid_t pid) { return namespace_id(fmt::format("/proc/{}/ns/net", pid)); }

/// Sends the signal to every process that `is_wanted(process, was_sent_before)`, until there is none. Returns how many
/// different ones there were.
template <typename Wanted>
int send_until_none(const std::vector<std::string>& net_namespaces, int signal, const char* doing, Wanted is_wanted) {
  std::set<pid_t> seen;
  for (const auto start = Clock::now();;) {
    std::vector<pid_t> left;
    for (const std::string& name : net_namespaces) {
      for (const Process& process : processes_in(name)) {
        if (is_wanted(process, seen.count(process.pid) > 0)) left.push_back(process.pid);
      }
    }
    if (left.empty()) return static_cast<int>(seen.size());
    if (seconds_since(start) > kPatience) {
      throw Error("{} {}: process {} did not react within {} s; see /proc/PID/status and /proc/PID/stack", doing,
                  fmt::join(net_namespaces, ", "), fmt::join(left, ", "), kPatience);
    }
    for (const pid_t pid : left) ::kill(pid, signal);
    seen.insert(left.begin(), left.end());
    std::this_thread::sleep_for(kBetweenLooks);
  }
}

}  // namespace

bool is_in_namespace(pid_t pid, const std::string& net_namespace) {
  const auto id = id_of_named(net_namespace);
  return id && pid > 0 && id_of_process(pid) == id;
}

std::vector<Process> processes_in(const std::string& net_namespace) {
  std::vector<Process> found;
  const auto id = id_of_named(net_namespace);
  if (!id) return found;
  for (const pid_t pid : all_pids()) {
    if (pid == ::getpid() || id_of_process(pid) != id) continue;
    const auto stat = process_stat(pid);
    if (!stat || stat->state == 'Z' || stat->state == 'X') continue;
    found.push_back({pid, stat->state == 'T' || stat->state == 't', stat->state == 'D'});
  }
  return found;
}

int kill_processes(const std::vector<std::string>& net_namespaces, const std::vector<pid_t>& spared) {
  return send_until_none(net_namespaces, SIGKILL, "killing what runs in", [&](const Process& process, bool) {
    return std::find(spared.begin(), spared.end(), process.pid) == spared.end();
  });
}

int stop_processes(const std::string& net_namespace) {
  // One that is blocked stops when it returns. It may never before we let it: a parent after vfork waits for its child,
  // which is stopped.
  send_until_none({net_namespace}, SIGSTOP, "pausing", [](const Process& process, bool was_sent) {
    return !process.is_stopped && !(process.is_blocked && was_sent);
  });
  return static_cast<int>(processes_in(net_namespace).size());
}

int continue_processes(const std::string& net_namespace) {
  // To those that run, too: one that was blocked may have its stop still before it.
  send_until_none({net_namespace}, SIGCONT, "resuming",
                  [](const Process& process, bool was_sent) { return process.is_stopped || !was_sent; });
  return static_cast<int>(processes_in(net_namespace).size());
}

}  // namespace tutti::netbox
