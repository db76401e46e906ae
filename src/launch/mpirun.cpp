#include "launch/mpirun.h"

#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <sstream>
#include <string_view>

#include "base/exit_note.h"
#include "base/names.h"
#include "base/process.h"
#include "base/terminal.h"
#include "comm/mpi/mpi.h"
#include "launch/stale_segments.h"
#include "tutti/error.h"

namespace tutti {
namespace {

constexpr int kMostSlots = 1'000'000;  // more than anybody has: a slip

/// What a person has set stays.
void set_unless_set(const char* name, const char* value) { ::setenv(name, value, 0); }

}  // namespace

int count_slots(const std::string& hosts) {
  int slots = 0;
  std::istringstream entries(hosts);
  for (std::string entry; std::getline(entries, entry, ',');) {
    const std::size_t colon = entry.find(':');
    int number = 1;
    const char* const end = entry.data() + entry.size();
    bool is_fine = is_host_name(std::string_view(entry).substr(0, colon));
    if (colon != std::string::npos) {
      const auto [rest, error] = std::from_chars(entry.data() + colon + 1, end, number);
      is_fine = is_fine && error == std::errc() && rest == end && number >= 1;
    }
    if (!is_fine)
      throw UsageError(
          "--hosts {}: '{}' does not read like HOST or HOST:RANKS; a host's name has letters, digits and . _ - in it, "
          "and none begins with '-'",
          hosts, entry);
    if (number > kMostSlots - slots) throw UsageError("--hosts {}: more than {} ranks are too many", hosts, kMostSlots);
    slots += number;
  }
  if (slots == 0) throw UsageError("--hosts needs at least one host, as in --hosts node1:2,node2:2");
  return slots;
}

std::vector<std::string> mpirun_command(const std::string& hosts, int processes) {
  if (!built_with_mpi())
    throw UsageError("this build has no MPI: install libopenmpi-dev and openmpi-bin, and build again");
  if (!is_in_path("mpirun")) throw UsageError("there is no mpirun: install openmpi-bin");
  remove_stale_segments();
  if (::geteuid() == 0) {
    set_unless_set("OMPI_ALLOW_RUN_AS_ROOT", "1");
    set_unless_set("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
  }
  // Ranks have threads of their own, which a rank bound to one core could not use; and a rank that waits leaves its
  // core to those that compute.
  set_unless_set("OMPI_MCA_hwloc_base_binding_policy", "none");
  set_unless_set("OMPI_MCA_mpi_yield_when_idle", "1");
  set_unless_set("OMPI_MCA_btl_base_warn_component_unused", "0");
  std::vector<std::string> command = {"mpirun", "-x", fmt::format("{}={}", kExitNotesVariable, STDERR_FILENO), "-np",
                                      std::to_string(processes)};
  if (stdout_is_terminal()) command.insert(command.begin() + 1, {"-x", std::string(kTerminalVariable) + "=1"});
  if (hosts.empty()) {
    set_unless_set("OMPI_MCA_rmaps_base_oversubscribe", "1");
  } else {
    command.insert(command.end(), {"--host", hosts});
  }
  return command;
}

}  // namespace tutti
