#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/launch_env.h"
#include "comm/transport.h"
#include "tutti/communicator.h"

namespace tutti {

struct ConnectOptions {
  std::string transport = kAutoTransport;
  bool by_node = false;  // mpi: inside nodes by shared memory first, then one rank of each on the network
  int servers = 0;       // processes of the job that come after its ranks and are none of them
  /// See wait_limits(); 0: waits go on for ever.
  std::chrono::milliseconds timeout{0};
  /// How long to wait for all ranks to come at the start. shm only; for mpi see reach_all_processes().
  std::chrono::milliseconds connect_timeout{60'000};
  int device = 0;  // nccl: the GPU of this rank
  /// auto: what tells this rank's GPU from every other, "" where it has none. Where each rank has one of its own, they
  /// join over nccl. Nothing: they never do. All ranks give something, or none.
  std::optional<std::string> gpu_id = {};
  ShareText share = {};  // nccl; empty: through what auto stands for
};

/// What `auto` stands for in this job, as long as nobody asks for GPUs.
const Transport& transport_of(const std::string& wanted, const LaunchEnv& env);

/// nccl: whether this machine, with so many GPUs, has one for each of its ranks.
bool has_gpu_for_each_rank(int gpus, const LaunchEnv& env);

/// Whether each rank has a GPU, and no two the same.
bool have_own_gpus(std::vector<std::string> gpu_ids);

/// Joins the other ranks of the job, as one that makes progress inside wait(). Throws UsageError when the transport
/// cannot.
std::unique_ptr<Communicator> connect_ranks(const ConnectOptions& options, const LaunchEnv& env);

}  // namespace tutti
