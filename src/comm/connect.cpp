#include "comm/connect.h"

#include <numeric>
#include <vector>

#include "base/error.h"
#include "comm/exchange.h"
#include "comm/mpi/mpi.h"
#include "comm/nccl/nccl.h"
#include "comm/shm/shm.h"

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

std::unique_ptr<Communicator> connect_ranks(const ConnectOptions& options, const LaunchEnv& env) {
  const std::string transport = transport_of(options.transport, env);
  if (transport == "nccl") return connect_nccl(options, env);
  return transport == "mpi" ? connect_mpi(options, env) : connect_shm(options, env);
}

}  // namespace tutti
