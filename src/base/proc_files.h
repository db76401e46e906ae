#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace tutti {

/// All processes that can be seen.
std::vector<pid_t> all_pids();

/// What /proc says of a process.
struct ProcessStat {
  char state = '?';  // 'R', 'S', 'T', …
  pid_t parent = 0;
  pid_t group = 0;
  uint64_t start_time = 0;  // in ticks since the machine started: tells it from a later process of the same number
};
/// Nothing when it has ended.
std::optional<ProcessStat> process_stat(pid_t pid);

}  // namespace tutti
