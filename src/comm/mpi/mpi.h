#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "comm/wait_limits.h"
#include "tutti/communicator.h"

namespace tutti {

struct MpiOptions {
  /// Ranks that give the same name meet; groups of different names do not disturb each other.
  std::string job = "tutti";
  int rank = 0;
  /// Where each rank lives: its process in MPI_COMM_WORLD, at most two ranks in one process. Empty: rank r is process
  /// r.
  std::vector<int> processes = {};
  /// How long a wait goes on while nothing moves.
  WaitLimits limits = {};
  /// true: a thread of the communicator makes progress while the caller computes. false: operations progress inside
  /// wait(), for a caller that has a communication thread of its own.
  bool progress_thread = true;
};

/// Ranks anywhere that MPI reaches. Collectives go straight from rank to rank and are added in rank order, so results
/// have the same bits as those of shm. Returns when all ranks have come. Throws UsageError where Tutti was built
/// without MPI.
std::unique_ptr<Communicator> make_mpi_communicator(const MpiOptions& options);

/// This process among those that one mpirun or srun started.
struct MpiWorld {
  int rank = 0;
  int size = 1;
  std::string library;  // "Open MPI v4.1.4 …"; empty where Tutti was built without MPI
};

/// Starts MPI, once per process; it ends with the process. A process that is not there after `timeout` ends this one,
/// with a message, at the start and at the end; 0: it is waited for.
MpiWorld start_mpi(std::chrono::milliseconds timeout = std::chrono::milliseconds(0));

/// Starts MPI and exchanges a word with every other process of the job. Throws CommFailed naming those that did not
/// answer in time. Where MPI itself does not start, because a process never came, this one says so and ends.
void reach_all_processes(std::chrono::milliseconds timeout);

bool built_with_mpi();

}  // namespace tutti
