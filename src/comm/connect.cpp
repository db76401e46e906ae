#include "comm/connect.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <utility>
#include <vector>

#include "comm/exchange.h"
#include "comm/hierarchical.h"
#include "comm/mpi/mpi.h"
#include "comm/nodes.h"
#include "tutti/error.h"

namespace tutti {
namespace {

void check_mpi_world(const ConnectOptions& options, const LaunchEnv& env) {
  const MpiWorld world = start_mpi(options.timeout);
  const int processes = env.size + options.servers;
  if (world.size != processes || world.rank != env.rank)
    throw UsageError(
        "{} says that this is rank {} of {}, MPI ({}) that it is {} of {}: start Tutti with the mpirun of "
        "the MPI it was built with{}",
        env.launcher.empty() ? "the environment" : env.launcher, env.rank, processes, world.library, world.rank,
        world.size, env.launcher == "srun" ? ", or add --mpi=pmix to srun" : "");
}

/// All ranks of the job.
RankGroup all_ranks(const ConnectOptions& options, const LaunchEnv& env) {
  RankGroup group{env.job, "ranks", env.rank, std::vector<int>(static_cast<std::size_t>(env.size))};
  std::iota(group.ranks.begin(), group.ranks.end(), 0);
  group.limits = wait_limits(options.timeout);
  group.connect_timeout = options.connect_timeout;
  group.gpu = options.device;
  group.share = options.share;
  return group;
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
  RankGroup inside{env.job, "by-node", env.rank - leaders[mine], nodes[mine].ranks};
  inside.connect_timeout = options.connect_timeout;
  inside.limits = wait_limits(options.timeout);
  groups.inside = find_transport("shm").join(inside);
  if (env.rank == leaders[mine]) {
    RankGroup first_of_each{env.job, "leaders", static_cast<int>(mine), leaders};
    first_of_each.limits = wait_limits(options.timeout);
    groups.leaders = find_transport("mpi").join(first_of_each);
  }
  groups.all = std::move(all);
  return make_hierarchical_communicator(std::move(groups));
}

}  // namespace

const Transport& transport_of(const std::string& wanted, const LaunchEnv& env) {
  if (wanted != kAutoTransport) return find_transport(wanted);
  const bool is_one_machine = env.nodes == 1 && env.local_size == env.size;
  const auto& all = transports();
  return *std::find_if(all.begin(), all.end(), [&](const Transport& transport) {
    return !transport.gpu_per_rank && (is_one_machine || !transport.one_machine);
  });
}

bool has_gpu_for_each_rank(int gpus, const LaunchEnv& env) {
  // NCCL_HOSTID lets NCCL take ranks of one machine for ranks of several, and then it lets them share a GPU.
  return gpus >= env.local_size || (gpus > 0 && std::getenv("NCCL_HOSTID") != nullptr);
}

bool have_own_gpus(std::vector<std::string> gpu_ids) {
  std::sort(gpu_ids.begin(), gpu_ids.end());
  return !gpu_ids.front().empty() && std::adjacent_find(gpu_ids.begin(), gpu_ids.end()) == gpu_ids.end();
}

std::unique_ptr<Communicator> connect_ranks(const ConnectOptions& options, const LaunchEnv& env) {
  const Transport& transport = transport_of(options.transport, env);
  if (transport.one_machine && (env.nodes > 1 || env.local_size != env.size))
    throw UsageError(
        "transport {} joins ranks of one machine, but this job has {} nodes: use --transport mpi, or start it on one",
        transport.name, env.nodes);
  if (transport.started_by_mpirun) check_mpi_world(options, env);
  RankGroup group = all_ranks(options, env);
  if (transport.gpu_per_rank && !group.share)
    group.share = [&](const std::string& text) {
      ConnectOptions others = options;
      others.transport = kAutoTransport;
      return broadcast_text(*connect_ranks(others, env), text);
    };
  auto all = transport.join(group);
  if (options.transport == kAutoTransport && options.gpu_id &&
      have_own_gpus(gather_texts(*all, gpu_transport() == nullptr ? "" : *options.gpu_id))) {
    group.share = [&](const std::string& text) { return broadcast_text(*all, text); };
    return gpu_transport()->join(group);
  }
  return options.by_node && transport.started_by_mpirun ? group_by_node(std::move(all), options, env) : std::move(all);
}

}  // namespace tutti
