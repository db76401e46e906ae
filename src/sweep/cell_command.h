#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "launch/slurm_file.h"
#include "sweep/cells.h"

namespace tutti::sweep {

/// Where cells run.
struct Place {
  std::string program;     // of Tutti, for cells on this machine and on others
  std::string hosts = "";  // "a:4,b:4": what --hosts said
  bool is_slurm = false;   // inside a Slurm job
  int slurm_cpus_per_task = 0;
  std::string slurm_mpi = "pmix";
  std::string slurm_fence = kSlurmFence;
  bool is_root = false;
  std::string cluster;  // what a cluster in a box for this sweep is called
};

/// What this process's environment says.
Place find_place(const std::string& program, const std::string& hosts, const std::filesystem::path& sweep_folder);

/// How to run one cell.
struct CellCommand {
  std::vector<std::vector<std::string>> before;  // commands that prepare it
  std::vector<std::string> words;
  std::vector<std::vector<std::string>> after;  // commands that clean up, also after a failure
  std::string launcher = "tutti";               // tutti, mpirun, srun, or box for a cluster in a box
};

/// One node: `tutti train --ranks …` on this machine. Several: started by mpirun on --hosts, by srun inside a Slurm
/// job, or else in a cluster in a box, where root can make one. Throws Error saying what is missing.
CellCommand cell_command(const SweepCell& cell, const std::filesystem::path& run_folder, const Place& place);

/// Ranks and servers on each node: as equal as possible, the first nodes having more.
std::vector<int> processes_per_node(int processes, int nodes);

/// As a person would type it.
std::string shell_line(const std::vector<std::string>& words);

}  // namespace tutti::sweep
