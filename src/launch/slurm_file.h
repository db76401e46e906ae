#pragma once

#include <string>
#include <vector>

namespace tutti {

/// The way of meeting that Slurm's PMIx plugin is told to use (SLURM_PMIX_FENCE). Its `tree`, which it uses by itself
/// for MPI_Init's last barrier, lets ranks go before all have come: what they send to one that is late crashes that one
/// (docs/reference/slurm.md).
inline constexpr char kSlurmFence[] = "ring";

/// A job for Slurm: what to run, on how much of a cluster.
struct SlurmJob {
  int nodes = 1;
  int ranks_per_node = 0;    // 0: one, or what `ranks` makes of it
  int ranks = 0;             // in all, where nodes take unequally many; 0: nodes × ranks_per_node
  int cpus_per_rank = 0;     // 0: what the cluster gives by itself
  int gpus_per_node = 0;     // 0: ask for none
  std::string time;          // as Slurm writes it: 90 (minutes), 1:30:00, 2-12; empty: the partition's
  std::string partition;     // empty: the cluster's own choice
  std::string name;          // empty: the run's name, else "tutti"
  std::string log;           // empty: NAME-JOB.log beside where sbatch was called
  std::string mpi = "pmix";  // srun's --mpi
  /// How long before the end of its time the job is told to save and stop.
  int signal_seconds = 90;
  std::vector<std::string> lines;    // more options for sbatch: "account=lab"
  std::string program = "tutti";     // the tutti to run; at the same place on all nodes
  std::vector<std::string> command;  // "train", "--model", …
  int saved_code = 85;               // what a run exits with that has saved and wants to be started again
};

/// The ranks that the job will have.
int count_ranks(const SlurmJob& job);

/// Seconds of a time as Slurm writes it; -1 for "infinite" and "unlimited". Throws UsageError for others.
long slurm_seconds(const std::string& time);

/// A word as a POSIX shell reads it back; plain words stay plain.
std::string shell_quote(const std::string& word);

/// The job as a file for sbatch. A run that saved and stopped is put back into the queue and goes on there: a `train`
/// without --auto-resume, --name or a checkpoint option gets them. Throws UsageError that says what cannot be.
std::string slurm_file(const SlurmJob& job);

}  // namespace tutti
