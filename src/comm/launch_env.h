#pragma once

#include <functional>
#include <optional>
#include <string>

namespace tutti {

/// Who this process is among the processes that run one training together.
struct LaunchEnv {
  int rank = 0;
  int size = 1;
  int local_rank = 0;  // among the ranks of this node
  int local_size = 1;
  int node = 0;
  int nodes = 1;
  std::string job = "";       // the same on all ranks, different from any other job on the machine
  std::string launcher = "";  // "tutti", "mpirun", "srun", "torchrun"; "" when started alone
};

using GetEnv = std::function<std::optional<std::string>(const char*)>;

/// What the launcher's environment variables say: Tutti's own (TUTTI_RANK, …), Open MPI's, MPICH's, Slurm's or
/// torchrun's, in that order. A lone process (also inside sbatch or salloc without srun) is rank 0 of 1.
/// Throws UsageError when variables contradict each other (rank ≥ size, not a number).
LaunchEnv read_launch_env(const GetEnv& get_env);
LaunchEnv read_launch_env();  // from this process's environment

}  // namespace tutti
