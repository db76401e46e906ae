#include "netbox/mpi_files.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/files.h"

namespace tutti::netbox {

namespace fs = std::filesystem;

std::string rsh_script(const Box& cluster) {
  std::string script = fmt::format(
      "#!/bin/sh\n"
      "# rsh HOST COMMAND…: runs a command on a node of the cluster '{}', as ssh would. Written by `tutti cluster "
      "up`.\n"
      "while [ $# -gt 0 ]; do\n"
      "  case $1 in\n"
      "    -l | -p | -o | -i) shift 2 ;; # options of ssh that take a value\n"
      "    -*) shift ;;\n"
      "    *) break ;;\n"
      "  esac\n"
      "done\n"
      "if [ $# -lt 2 ]; then\n"
      "  echo \"usage: $0 HOST COMMAND...\" >&2\n"
      "  exit 255\n"
      "fi\n"
      "host=$1\n"
      "shift\n"
      "case $host in\n",
      cluster.name);
  for (const BoxNode& node : cluster.nodes)
    script += fmt::format("  {0} | {1}) node={0} holder={2} ;;\n", node.name, node.address, node.holder);
  script += fmt::format(
      "  *)\n"
      "    echo \"rsh: the cluster '{0}' has no node '$host'\" >&2\n"
      "    exit 255\n"
      "    ;;\n"
      "esac\n"
      "# The holder may be gone and its number another process's.\n"
      "if ! [ \"/proc/$holder/ns/net\" -ef \"/run/netns/{1}$node\" ]; then\n"
      "  echo \"rsh: $node is down: the process that holds it is gone\" >&2\n"
      "  exit 255\n"
      "fi\n"
      "if grep -q '^State:.T' \"/proc/$holder/status\"; then\n"
      "  echo \"rsh: $node is paused\" >&2\n"
      "  exit 255\n"
      "fi\n"
      "exec nsenter --target \"$holder\" --net --uts --mount -- env -C \"$PWD\" sh -c \"$*\"\n",
      cluster.name, namespace_prefix(cluster.name));
  return script;
}

void write_mpi_files(const Box& cluster) {
  const fs::path folder = state_folder(cluster.name);
  std::string hostfile;
  for (const BoxNode& node : cluster.nodes) hostfile += fmt::format("{} slots={}\n", node.name, node.slots);
  write_file_atomically(folder / "hostfile", hostfile);
  write_file_atomically(folder / "rsh", rsh_script(cluster));
  fs::permissions(folder / "rsh", fs::perms(0755));
}

std::map<std::string, std::string> node_environment(const Box& cluster, bool by_node) {
  const fs::path folder = state_folder(cluster.name);
  return {
      {"TUTTI_CLUSTER", cluster.name},
      {"TUTTI_CLUSTER_SCALE", fmt::format("{:g}", cluster.network.scale())},
      {"OMPI_ALLOW_RUN_AS_ROOT", "1"},
      {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
      {"OMPI_MCA_plm", "rsh"},
      {"OMPI_MCA_plm_rsh_agent", (folder / "rsh").string()},
      {"OMPI_MCA_orte_default_hostfile", (folder / "hostfile").string()},
      // Where its daemons keep files: /tmp is shared by all nodes, and stays when a daemon was killed.
      {"OMPI_MCA_orte_tmpdir_base", "/dev/shm"},
      {"OMPI_MCA_pml", "ob1"},
      {"OMPI_MCA_btl", "self,vader,tcp"},  // vader, shared memory, only joins ranks of one node: /dev/shm is per node
      {"OMPI_MCA_btl_tcp_if_include", "eth0"},
      {"OMPI_MCA_oob_tcp_if_include", "eth0"},
      // There are more ranks than cores. Without it a message of 1 KB takes 8 ms instead of 0.07.
      {"OMPI_MCA_mpi_yield_when_idle", "1"},
      {"OMPI_MCA_hwloc_base_binding_policy", "none"},
      {"OMPI_MCA_rmaps_base_mapping_policy", by_node ? "node" : "slot"},
      {"OMPI_MCA_rmaps_base_oversubscribe", "1"},
      // All nodes share the machine's cores: threads that wait for each other for want of one are far slower than none.
      {"OMP_NUM_THREADS", "1"},
      {"OPENBLAS_NUM_THREADS", "1"},
  };
}

}  // namespace tutti::netbox
