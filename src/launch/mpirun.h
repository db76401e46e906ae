#pragma once

#include <string>
#include <vector>

namespace tutti {

/// "a:2,b:2" or "a,b": how many processes it asks for. Throws UsageError for what does not read like that.
int count_slots(const std::string& hosts);

/// The beginning of a command line that starts `processes` with Open MPI on `hosts` (empty: here), and what it needs in
/// the environment. Removes what ranks that were killed have left here (remove_stale_segments()). Throws UsageError
/// where there is no mpirun.
std::vector<std::string> mpirun_command(const std::string& hosts, int processes);

}  // namespace tutti
