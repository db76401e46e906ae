#include "base/proc_files.h"

#include <dirent.h>
#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <memory>
#include <sstream>

namespace tutti {

std::vector<pid_t> all_pids() {
  std::vector<pid_t> pids;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir("/proc"), ::closedir);
  if (folder == nullptr) return pids;
  while (const dirent* entry = ::readdir(folder.get())) {
    const long pid = std::strtol(entry->d_name, nullptr, 10);
    if (pid > 0) pids.push_back(static_cast<pid_t>(pid));
  }
  return pids;
}

std::optional<ProcessStat> process_stat(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  // PID (NAME) STATE PARENT GROUP …, where the name may hold anything, parentheses too.
  std::istringstream fields(line.substr(line.rfind(')') + 1));
  ProcessStat stat;
  if (!(fields >> stat.state >> stat.parent >> stat.group)) return std::nullopt;
  constexpr int kBetween = 16;  // fields that nobody wants to know
  std::string skipped;
  for (int i = 0; i < kBetween; ++i) fields >> skipped;
  fields >> stat.start_time;
  return stat;
}

}  // namespace tutti
