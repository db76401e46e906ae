#pragma once

#include <sys/types.h>

#include <map>
#include <optional>

namespace tutti {

/// Processes below this one that a signal such as SIGSTOP has stopped, with their rank where mpirun has given them one.
/// For ranks that are no children of ours, so that the kernel does not tell us.
std::map<pid_t, std::optional<int>> stopped_descendants();

}  // namespace tutti
