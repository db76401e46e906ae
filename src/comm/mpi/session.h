#pragma once

#include <mpi.h>

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tutti/communicator.h"

namespace tutti::mpi {

/// Throws CommFailed with MPI's own words unless `code` says success.
void check(int code, const char* what);

/// The processes behind one group of ranks, with a context of MPI for each kind of message, so that they never meet.
/// A process may hold two ranks of a group (a worker and a server beside it): its "first" and its "second".
/// The contexts are never freed: a farewell may still be on its way to one, and Open MPI crashes if it finds another in
/// its place.
struct RankGroup {
  MPI_Comm collectives = MPI_COMM_NULL;
  MPI_Comm control = MPI_COMM_NULL;
  MPI_Comm messages[2] = {MPI_COMM_NULL, MPI_COMM_NULL};  // to first, to second ranks
  std::vector<int> process_of;                            // of each rank, in these contexts
  std::vector<int> is_second;                             // 0 or 1 for each rank
  std::vector<int> in_job;                                // the number of each rank's process in the job
  int tag_bits = 15;

  int size() const { return static_cast<int>(process_of.size()); }
  int process(int rank) const { return process_of[static_cast<std::size_t>(rank)]; }
  int job_rank(int rank) const { return in_job[static_cast<std::size_t>(rank)]; }
  int second(int rank) const { return is_second[static_cast<std::size_t>(rank)]; }
};

/// MPI in this process, from the first use to the end.
class Session {
 public:
  /// What waits for all processes, the start and the end of MPI among it, ends this process after `timeout` of the
  /// first call, but not before a minute; 0: never.
  static Session& get(std::chrono::milliseconds timeout = std::chrono::milliseconds(0));

  int rank() const { return rank_; }
  int size() const { return size_; }

  /// Collective over the processes. The second rank of a process gets what the first one got.
  std::shared_ptr<RankGroup> join(const std::string& job, const std::vector<int>& processes);

  /// Something failed for good: MPI cannot be ended in good order, which takes everybody.
  void give_up() { given_up_ = true; }

 private:
  explicit Session(std::chrono::milliseconds timeout);
  ~Session();

  const std::chrono::milliseconds limit_;
  int rank_ = 0;
  int size_ = 1;
  bool is_ours_ = false;  // else somebody else started MPI and will end it
  std::atomic<bool> given_up_{false};
  std::mutex mutex_;
  std::map<std::string, std::weak_ptr<RankGroup>> groups_;
};

}  // namespace tutti::mpi
