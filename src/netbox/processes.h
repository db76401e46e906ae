#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace tutti::netbox {

struct Process {
  pid_t pid = 0;
  bool is_stopped = false;
  bool is_blocked = false;  // in the kernel, for a disk or for a child after vfork; takes no signal until it returns
};

/// Whether the process is in this network namespace; false when either is gone.
bool is_in_namespace(pid_t pid, const std::string& net_namespace);

/// All processes in a network namespace, but for this one.
std::vector<Process> processes_in(const std::string& net_namespace);

/// SIGKILL to all processes in the namespaces except `spared`, again until none is left: they may be starting others.
/// Returns how many there were. Throws Error when some stay for 5 s.
int kill_processes(const std::vector<std::string>& net_namespaces, const std::vector<pid_t>& spared = {});

/// SIGSTOP or SIGCONT to all processes in a namespace, until none runs or none is stopped. Returns how many there are.
int stop_processes(const std::string& net_namespace);
int continue_processes(const std::string& net_namespace);

}  // namespace tutti::netbox
