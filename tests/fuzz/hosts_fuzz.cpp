// Lists of hosts, as people, Slurm and launchers write them. A host that is taken cannot be an option of ssh.
#include <sstream>
#include <stdexcept>

#include "comm/launch_env.h"
#include "fuzz/fuzz.h"
#include "launch/mpirun.h"
#include "record/node_list.h"
#include "sweep/cell_command.h"

namespace tutti::fuzz {

static std::string fuzz_hosts(std::string_view input) {
  const std::string text(input);
  const std::string taken = outcome([&] {
    const sweep::Place place = sweep::find_place("tutti", text, "/sweep");
    for (std::istringstream hosts(text); hosts && !text.empty();) {
      std::string host;
      if (std::getline(hosts, host, ',') && (host.empty() || host[0] == '-' || host.find(' ') != std::string::npos))
        throw std::logic_error("a host that is no host is taken");
    }
    sweep::SweepCell cell;
    cell.id = "a";
    cell.nodes = 2;
    cell.ranks = 3;
    cell_command(cell, "/sweep/cells/a", place);
  });
  const auto nodes = expand_node_list(text);
  if (nodes && nodes->size() > 65536) throw std::logic_error("more nodes than there are");
  if (nodes) compress_node_list(*nodes);
  const std::string env = outcome([&] {
    read_launch_env([&](const char* name) -> std::optional<std::string> {
      const std::string key = std::string(name) + "=";
      const std::size_t at = text.find(key);
      if (at == std::string::npos) return std::nullopt;
      return text.substr(at + key.size(), std::min(text.find(' ', at), text.size()) - at - key.size());
    });
  });
  return taken + (nodes ? "list" : "none") + env;
}

static std::vector<std::string> hosts_seeds() {
  return {"a:2,b:2",
          "node1,node2",
          "gn[01-03,07],lm[1,6]",
          "-oProxyCommand=x",
          "me@10.0.0.1:4",
          "n[0-65535],m[0-65535]",
          "SLURM_PROCID=1 SLURM_STEP_ID=0 SLURM_NTASKS=4 SLURM_NNODES=2 SLURM_NODEID=1 SLURM_TASKS_PER_NODE=2(x2) ",
          "RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 ",
          "PMI_RANK=0 PMI_SIZE=3 MPI_LOCALRANKID=0 ",
          "2(x999999),",
          "2147483647"};
}

static const Target kHosts("hosts", fuzz_hosts, hosts_seeds);

}  // namespace tutti::fuzz
