#include "comm/connect.h"

#include <cstdlib>
#include <numeric>
#include <utility>
#include <vector>

#include "comm/exchange.h"
#include "comm/hierarchical.h"
#include "comm/mpi/mpi.h"
#include "comm/nccl/nccl.h"
#include "comm/nodes.h"
#include "comm/shm/shm.h"
#include "tutti/error.h"

namespace tutti {
namespace {

std::unique_ptr<Communicator> connect_shm(const ConnectOptions& options, const LaunchEnv& env) {
  if (env.nodes > 1 || env.local_size != env.size)
    throw UsageError(
        "transport shm joins ranks of one machine, but this job has {} nodes: use --transport mpi, or start it on one",
        env.nodes);
  ShmOptions shm;
  shm.rank = env.rank;
  shm.size = env.size;
  shm.job = env.job;
  shm.connect_timeout = options.connect_timeout;
  shm.progress_thread = false;
  return make_shm_communicator(shm);
}

std::unique_ptr<Communicator> connect_mpi(const ConnectOptions& options, const LaunchEnv& env) {
  const MpiWorld world = start_mpi();
  const int processes = env.size + options.servers;
  if (world.size != processes || world.rank != env.rank)
    throw UsageError(
        "{} says that this is rank {} of {}, MPI ({}) that it is {} of {}: start Tutti with the mpirun of "
        "the MPI it was built with{}",
        env.launcher.empty() ? "the environment" : env.launcher, env.rank, processes, world.library, world.rank,
        world.size, env.launcher == "srun" ? ", or add --mpi=pmix to srun" : "");
  std::vector<int> ranks(static_cast<std::size_t>(env.size));
  std::iota(ranks.begin(), ranks.end(), 0);
  return make_mpi_communicator({"ranks", env.rank, ranks, options.timeout, false});
}

/// The same ranks, in groups: each node's own, and one rank of each.
std::unique_ptr<Communicator> group_by_node(std::unique_ptr<Communicator> all, const ConnectOptions& options,
                                            const LaunchEnv& env) {
  const std::vector<Node> nodes = find_nodes(*all);
  NodeGroups groups;
  std::vector<int> leaders;
  std::size_t mine = 0;
  for (const Node& node : nodes) {
    if (node.ranks.back() - node.ranks.front() + 1 != static_cast<int>(node.ranks.size()))
      throw UsageError(
          "--by-node needs the ranks of a node to follow each other, but {} has {} from {} to {}: start them with "
          "mpirun --map-by slot",
          node.host, node.ranks.size(), node.ranks.front(), node.ranks.back());
    if (env.rank >= node.ranks.front() && env.rank <= node.ranks.back()) mine = leaders.size();
    leaders.push_back(node.ranks.front());
    groups.node_ranks.push_back(static_cast<int>(node.ranks.size()));
  }
  if (leaders.size() == static_cast<std::size_t>(env.size)) return all;  // a rank on each node: nothing is inside
  ShmOptions inside;
  inside.rank = env.rank - leaders[mine];
  inside.size = groups.node_ranks[mine];
  inside.job = fmt::format("{}-by-node", env.job);
  inside.connect_timeout = options.connect_timeout;
  inside.progress_thread = false;
  groups.inside = make_shm_communicator(inside);
  if (env.rank == leaders[mine])
    groups.leaders =
        make_mpi_communicator({"leaders", static_cast<int>(mine), leaders, options.timeout, /*progress_thread=*/false});
  groups.all = std::move(all);
  return make_hierarchical_communicator(std::move(groups));
}

std::unique_ptr<Communicator> connect_nccl(const ConnectOptions& options, const LaunchEnv& env) {
  NcclOptions nccl;
  nccl.rank = env.rank;
  nccl.size = env.size;
  nccl.device = options.device;
  nccl.timeout = options.timeout;
  nccl.share = options.share;
  if (!nccl.share)
    nccl.share = [&](const std::string& text) {
      ConnectOptions others = options;
      others.transport = "auto";
      return broadcast_text(*connect_ranks(others, env), text);
    };
  return make_nccl_communicator(nccl);
}

}  // namespace

std::string transport_of(const std::string& wanted, const LaunchEnv& env) {
  if (wanted != "auto") return wanted;
  return env.nodes == 1 && env.local_size == env.size ? "shm" : "mpi";
}

bool has_gpu_for_each_rank(int gpus, const LaunchEnv& env) {
  // NCCL_HOSTID lets NCCL take ranks of one machine for ranks of several, and then it lets them share a GPU.
  return gpus >= env.local_size || (gpus > 0 && std::getenv("NCCL_HOSTID") != nullptr);
}

std::unique_ptr<Communicator> connect_ranks(const ConnectOptions& options, const LaunchEnv& env) {
  const std::string transport = transport_of(options.transport, env);
  if (transport == "nccl") return connect_nccl(options, env);
  if (transport != "mpi") return connect_shm(options, env);
  auto all = connect_mpi(options, env);
  return options.by_node ? group_by_node(std::move(all), options, env) : std::move(all);
}

}  // namespace tutti
