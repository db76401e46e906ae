#pragma once

#include <torch/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/launch_env.h"
#include "comm/nodes.h"
#include "comm/ps/servers.h"
#include "train/options.h"
#include "tutti/communicator.h"

namespace tutti {

/// Joins the other ranks of the job. Throws UsageError when the transport cannot.
std::unique_ptr<Communicator> connect(const TrainOptions& options, const LaunchEnv& env);

/// Connects a rank with its parameter servers; null where the strategy needs none.
std::unique_ptr<Servers> connect_servers(const TrainOptions& options, const LaunchEnv& env);

/// The last processes of a job that has parameter servers of their own are those; true when this was one of them and
/// has served until the ranks ended. Otherwise `env` speaks of the ranks alone from now on.
bool serve_if_server(const TrainOptions& options, LaunchEnv& env);

/// `wanted` is auto, cpu or cuda; ranks share GPUs when there are more of them.
torch::Device choose_device(const std::string& wanted, int local_rank);

/// Threads that this process computes with.
void set_compute_threads(int threads);

/// Runs `work` on every rank; when it fails anywhere, all ranks stop, and only the first failing one speaks: the others
/// throw Stopped. A collective.
void all_ranks_or_none(Communicator& comm, const std::function<void()>& work);

/// Runs `work` on rank 0, in a thread, while the others wait: however long it takes, since they hear twice a second
/// that it is going on. When it fails, rank 0 throws what it threw, and the others Stopped. A collective.
void first_rank_alone(Communicator& comm, const std::function<void()>& work);

}  // namespace tutti
