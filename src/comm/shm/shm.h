#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "comm/wait_limits.h"
#include "tutti/communicator.h"

namespace tutti {

struct ShmOptions {
  int rank = 0;
  int size = 1;
  int servers = 0;  // so many of the last ranks are called parameter servers in messages
  /// Ranks that give the same name meet. The name lives in the kernel's abstract socket namespace and leaves
  /// nothing behind.
  std::string job = "";
  /// How long to wait for all ranks to come at the start.
  std::chrono::milliseconds connect_timeout{60'000};
  /// How long a wait goes on while nothing moves.
  WaitLimits limits = {};
  /// What messages call the ranks of this group: their numbers in the job. Empty: these.
  std::vector<int> ranks = {};
  /// How long a wait polls before it sleeps in the kernel; 0 µs sleeps at once. Unset: long when there is a core
  /// for every rank, short otherwise.
  std::chrono::microseconds spin{-1};
  /// true: a thread of the communicator makes progress while the caller computes. false: operations progress inside
  /// wait(), for a caller that has a communication thread of its own; latency is lower.
  bool progress_thread = true;
};

/// Ranks on one machine, over shared memory. Returns when all ranks have come. Throws CommFailed naming the missing
/// ranks.
std::unique_ptr<Communicator> make_shm_communicator(const ShmOptions& options);

}  // namespace tutti
