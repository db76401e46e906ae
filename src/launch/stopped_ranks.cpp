#include "launch/stopped_ranks.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "base/proc_files.h"

namespace tutti {
namespace {

std::optional<int> rank_of(pid_t pid) {
  constexpr char kName[] = "OMPI_COMM_WORLD_RANK=";
  std::ifstream environment(fmt::format("/proc/{}/environ", pid));
  for (std::string variable; std::getline(environment, variable, '\0');)
    if (variable.rfind(kName, 0) == 0) return std::atoi(variable.c_str() + sizeof kName - 1);
  return std::nullopt;
}

}  // namespace

std::map<pid_t, std::optional<int>> stopped_descendants() {
  std::map<pid_t, ProcessStat> all;
  for (const pid_t pid : all_pids())
    if (const auto stat = process_stat(pid)) all[pid] = *stat;
  std::map<pid_t, std::optional<int>> stopped;
  for (const auto& [pid, stat] : all) {
    if (stat.state != 'T') continue;
    // The list was made while processes came and went: no more steps than there are processes.
    std::size_t steps = 0;
    pid_t above = stat.parent;
    while (above != ::getpid() && all.count(above) > 0 && ++steps < all.size()) above = all[above].parent;
    if (above == ::getpid()) stopped[pid] = rank_of(pid);
  }
  return stopped;
}

}  // namespace tutti
