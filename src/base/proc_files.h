#pragma once

#include <sys/types.h>

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
};
/// Nothing when it has ended.
std::optional<ProcessStat> process_stat(pid_t pid);

}  // namespace tutti
