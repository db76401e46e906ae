#pragma once

#include <tutti/communicator.h>

#include <chrono>
#include <memory>
#include <string>

namespace tutti {

class PushPull;
class Servers;
struct LaunchEnv;

/// How a job's ranks find each other.
struct JobOptions {
  std::string transport = "auto";  // shm, mpi, nccl, or auto: shm where all ranks are on one machine, else mpi
  int device = 0;                  // nccl: the GPU of this rank
  /// How long a wait goes on without any news from a rank that gives no sign of life; 0: for ever. One that does may
  /// take ten times as long.
  std::chrono::milliseconds timeout{300'000};
};

/// This process among the ranks that train together, and its way to the others.
///
///   tutti::Job job = tutti::Job::from_environment();
///   job.communicator().all_reduce_sum(span)->wait();
class Job {
 public:
  /// Its place comes from the variables of whoever started it: tutti, mpirun, srun or torchrun; alone it is rank 0
  /// of 1. A collective: joins the others. Throws UsageError where variables contradict each other or the transport
  /// cannot be used, CommFailed when a rank does not come.
  static Job from_environment(const JobOptions& options = {});

  int rank() const { return comm_->rank(); }
  int size() const { return comm_->size(); }
  /// Among the ranks of this machine: which GPU to take.
  int local_rank() const { return local_rank_; }
  Communicator& communicator() { return *comm_; }
  /// What started this process: "tutti", "mpirun", "srun", "torchrun"; "" when it is alone.
  const std::string& launcher() const { return launcher_; }

  /// The way to parameter servers, a thread beside each rank, for strategies that need them (EngineOptions::servers).
  /// A collective, the first time; for one engine at a time. Needs shm or mpi.
  PushPull& parameter_servers();
  /// The end of a job, in good order: lets the servers go, and returns when every rank has come. A collective.
  void finish();

  Job(Job&& other) noexcept;
  ~Job();

 private:
  Job(const JobOptions& options, const LaunchEnv& env);

  JobOptions options_;
  int local_rank_;
  std::string name_, launcher_;
  std::unique_ptr<Communicator> comm_;
  std::unique_ptr<Servers> servers_;
};

}  // namespace tutti
