#include "sweep/cell_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <functional>

#include "launch/mpirun.h"
#include "launch/slurm_file.h"
#include "tutti/error.h"

namespace tutti::sweep {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

void append(Words& words, const Words& more) { words.insert(words.end(), more.begin(), more.end()); }

/// The options of `tutti train` that are the same wherever it runs.
Words train_words(const SweepCell& cell, const fs::path& run_folder) {
  Words words = {"train"};
  for (const auto& [name, value] : cell.options)
    if (name != "ranks") words.push_back(fmt::format("--{}={}", name, value));
  append(words, {"--runs=" + run_folder.parent_path().string(), "--name=" + run_folder.filename().string()});
  if (cell.trace) words.push_back("--trace=" + (run_folder / "trace.json").string());
  return words;
}

/// What makes links as slow as those of the network that is emulated.
Words link_words(const SweepCell& cell) {
  Words words;
  if (cell.emulated.gbps > 0) words.push_back(fmt::format("--link-gbps={:g}", cell.emulated.gbps));
  if (cell.emulated.startup_us > 0) words.push_back(fmt::format("--link-startup-us={:g}", cell.emulated.startup_us));
  return words;
}

/// The first of --hosts, each with as many places as it has to have.
std::string chosen_hosts(const std::string& hosts, const std::vector<int>& processes) {
  std::string chosen;
  std::size_t begin = 0;
  for (const int count : processes) {
    if (begin > hosts.size())
      throw Error("--hosts {} names fewer machines than the {} nodes of this cell", hosts, processes.size());
    const std::size_t end = std::min(hosts.find(',', begin), hosts.size());
    const std::string host = hosts.substr(begin, end - begin);
    chosen += fmt::format("{}{}:{}", chosen.empty() ? "" : ",", host.substr(0, host.find(':')), count);
    begin = end + 1;
  }
  return chosen;
}

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

std::vector<int> processes_per_node(int processes, int nodes) {
  std::vector<int> all;
  all.reserve(static_cast<std::size_t>(nodes));
  for (int node = 0; node < nodes; ++node) all.push_back(processes / nodes + (node < processes % nodes ? 1 : 0));
  return all;
}

Place find_place(const std::string& program, const std::string& hosts, const fs::path& sweep_folder) {
  Place place;
  place.program = program;
  place.hosts = hosts;
  if (!hosts.empty()) count_slots(hosts);  // throws unless it can be read
  place.is_slurm = !environment("SLURM_JOB_ID").empty();
  place.slurm_cpus_per_task = std::atoi(environment("SLURM_CPUS_PER_TASK").c_str());
  if (const std::string mpi = environment("SLURM_MPI_TYPE"); !mpi.empty()) place.slurm_mpi = mpi;
  if (const std::string fence = environment("SLURM_PMIX_FENCE"); !fence.empty()) place.slurm_fence = fence;
  place.is_root = ::geteuid() == 0;
  // The same for the same folder: what a killed sweep has left there is replaced when it goes on.
  const std::size_t hash = std::hash<std::string>()(fs::absolute(sweep_folder).lexically_normal().string());
  place.cluster = fmt::format("bench-{:08x}", hash & 0xffffffffU);
  return place;
}

CellCommand cell_command(const SweepCell& cell, const fs::path& run_folder, const Place& place) {
  CellCommand command;
  Words train = train_words(cell, run_folder);
  if (cell.nodes == 1) {
    command.words = {place.program};
    append(command.words, train);
    if (cell.ranks > 0) command.words.push_back(fmt::format("--ranks={}", cell.ranks));
    append(command.words, link_words(cell));
    return command;
  }
  const int ranks = cell.ranks > 0 ? cell.ranks : cell.nodes;
  const int processes = ranks + cell.servers;
  const std::vector<int> per_node = processes_per_node(processes, cell.nodes);
  if (!place.hosts.empty()) {
    command.launcher = "mpirun";
    command.words = {place.program};
    append(command.words, train);
    command.words.push_back("--hosts=" + chosen_hosts(place.hosts, per_node));
    append(command.words, link_words(cell));
    return command;
  }
  if (place.is_slurm) {
    command.launcher = "srun";
    // --overlap: this process may be a step itself.
    command.words = {"env",
                     "SLURM_PMIX_FENCE=" + place.slurm_fence,
                     "srun",
                     "--mpi=" + place.slurm_mpi,
                     "--overlap",
                     fmt::format("--nodes={}", cell.nodes),
                     fmt::format("--ntasks={}", processes),
                     "--kill-on-bad-exit=1"};
    if (place.slurm_cpus_per_task > 0)
      command.words.push_back(fmt::format("--cpus-per-task={}", place.slurm_cpus_per_task));
    command.words.push_back(place.program);
    append(command.words, train);
    append(command.words, link_words(cell));
    return command;
  }
  if (!place.is_root)
    throw Error(
        "{} nodes: run this inside a Slurm job, name machines with --hosts a:2,b:2, or be root, who can make a cluster "
        "in a box (docs/guide/cluster-in-a-box.md)",
        cell.nodes);
  command.launcher = "box";
  const Words cluster = {place.program, "cluster"};
  Words up = cluster;
  append(up, {"up", "--name", place.cluster, "--replace", fmt::format("--slots={}", fmt::join(per_node, ","))});
  if (cell.emulated.gbps > 0) append(up, {"--rate", fmt::format("{:g}gbit", cell.emulated.gbps)});
  command.before.push_back(up);
  command.words = cluster;
  append(command.words,
         {"run", "--name", place.cluster, "--", "mpirun", "-np", std::to_string(processes), place.program});
  append(command.words, train);
  Words down = cluster;
  append(down, {"down", "--name", place.cluster});
  command.after.push_back(down);
  return command;
}

std::string shell_line(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + shell_quote(word);
  return line;
}

}  // namespace tutti::sweep
