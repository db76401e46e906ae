#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/wait_limits.h"
#include "tutti/communicator.h"

namespace tutti {

/// Gives every rank what rank 0 passes, so that they find each other.
using ShareText = std::function<std::string(const std::string& of_rank_0)>;

/// Some processes of a job that join. Groups of different names do not disturb each other.
struct RankGroup {
  std::string job;         // the same in all groups of a job, different from any other job on the machine
  std::string name;        // "ranks"
  int rank = 0;            // this process's place in the group
  std::vector<int> ranks;  // the processes of the group, by their number in the job
  int servers = 0;         // so many of the last are called parameter servers in messages
  WaitLimits limits = {};  // nccl: of the first, since it hears of no signs of life
  /// How long to wait for all to come. shm only; for mpi see reach_all_processes().
  std::chrono::milliseconds connect_timeout{60'000};
  bool progress_thread = false;  // false: operations progress inside wait()
  int gpu = 0;                   // of this rank, where each has one
  ShareText share = {};          // where each has a GPU

  int size() const { return static_cast<int>(ranks.size()); }
};

/// What messages travel through, and all that others know about it.
struct Transport {
  std::string name;
  std::string summary;       // for --help
  bool one_machine;          // joins ranks of one machine only
  bool gpu_per_rank;         // each rank needs a GPU of its own, whose memory its messages lie in
  bool started_by_mpirun;    // its processes have to be
  std::string (*missing)();  // "NCCL": what this build lacks for it; "" where it has all
  std::unique_ptr<Communicator> (*join)(const RankGroup& group);
};

/// Instead of a transport's name: the one between GPUs where each rank has its own, else the first that reaches all
/// ranks.
constexpr const char* kAutoTransport = "auto";

/// The first are better, where they can be used.
const std::vector<Transport>& transports();
/// The one between GPUs; null where this build lacks what it needs.
const Transport* gpu_transport();
/// With auto, first.
std::vector<std::string> transport_names();
/// Throws UsageError for an unknown name. Not for auto.
const Transport& find_transport(const std::string& name);
/// "shm or mpi": those that need no GPUs.
std::string transports_for_any_device();
/// What `--transport` means, for --help.
std::string transport_help();

}  // namespace tutti
