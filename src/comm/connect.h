#pragma once

#include <chrono>
#include <memory>
#include <string>

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
  int device = 0;        // nccl: the GPU of this rank
  ShareText share = {};  // nccl; empty: through what auto stands for
};

/// What `auto` stands for in this job.
const Transport& transport_of(const std::string& wanted, const LaunchEnv& env);

/// nccl: whether this machine, with so many GPUs, has one for each of its ranks.
bool has_gpu_for_each_rank(int gpus, const LaunchEnv& env);

/// Joins the other ranks of the job, as one that makes progress inside wait(). Throws UsageError when the transport
/// cannot.
std::unique_ptr<Communicator> connect_ranks(const ConnectOptions& options, const LaunchEnv& env);

}  // namespace tutti
