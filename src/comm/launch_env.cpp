#include "comm/launch_env.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <vector>

#include "tutti/error.h"

namespace tutti {
namespace {

/// Environment variables as numbers. Every error names the variable and its value.
class Variables {
 public:
  explicit Variables(const GetEnv& get_env) : get_env_(get_env) {}

  std::string text(const char* name) const { return get_env_(name).value_or(""); }
  bool is_set(const char* name) const { return !text(name).empty(); }

  std::optional<int> number(const char* name) const {
    const std::string value = text(name);
    if (value.empty()) return std::nullopt;
    int result = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), result);
    if (error != std::errc() || end != value.data() + value.size() || result < 0) {
      throw UsageError("{}={} is not a whole number from 0 on", name, value);
    }
    return result;
  }

  /// The first of the variables that is set.
  std::optional<int> number(std::initializer_list<const char*> names) const {
    for (const char* name : names) {
      if (const auto value = number(name)) return value;
    }
    return std::nullopt;
  }

  int required(const char* name, const char* because) const {
    if (const auto value = number(name)) return *value;
    throw UsageError("{} is not set although {} is", name, because);
  }

  /// The text of the first of the variables that is set.
  std::string first_text(std::initializer_list<const char*> names) const {
    for (const char* name : names) {
      if (is_set(name)) return text(name);
    }
    return "";
  }

 private:
  const GetEnv& get_env_;
};

void check_below(const char* name, int value, const char* limit_name, int limit) {
  if (limit < 1) throw UsageError("{}={} must be at least 1", limit_name, limit);
  if (value >= limit) throw UsageError("{}={} must be below {}={}", name, value, limit_name, limit);
}

/// The names under which a launcher gives the six numbers; nullptr where it has none.
struct Names {
  const char *rank, *size, *local_rank, *local_size, *node, *nodes;
};

LaunchEnv read_numbers(const Variables& env, const Names& names, const char* launcher) {
  const auto optional = [&](const char* name, int otherwise) {
    return name == nullptr ? otherwise : env.number(name).value_or(otherwise);
  };
  LaunchEnv result;
  result.launcher = launcher;
  result.rank = env.required(names.rank, names.size);
  result.size = env.required(names.size, names.rank);
  check_below(names.rank, result.rank, names.size, result.size);
  // A launcher that says nothing about nodes is taken to run everything on this one.
  result.local_size = optional(names.local_size, result.size);
  result.local_rank = optional(names.local_rank, result.local_size == result.size ? result.rank : 0);
  check_below(names.local_rank == nullptr ? names.rank : names.local_rank, result.local_rank,
              names.local_size == nullptr ? names.size : names.local_size, result.local_size);
  if (result.local_size > result.size) {
    throw UsageError("{}={} is more than {}={}", names.local_size, result.local_size, names.size, result.size);
  }
  // Without a node number: the one that follows when all nodes but the last run equally many ranks, in order.
  result.nodes = optional(names.nodes, (result.size + result.local_size - 1) / result.local_size);
  result.node = optional(names.node, (result.rank - result.local_rank) / result.local_size);
  if (names.node != nullptr && env.is_set(names.node) && env.is_set(names.nodes)) {
    check_below(names.node, result.node, names.nodes, result.nodes);
  }
  result.nodes = std::max(result.nodes, result.node + 1);
  return result;
}

constexpr int kMostNodes = 1'000'000;

/// Ranks per node from Slurm's "2(x3),1": 2, 2, 2, 1.
std::vector<int> tasks_per_node(const char* name, const std::string& text) {
  std::vector<int> tasks;
  const char* at = text.data();
  const char* const end = at + text.size();
  const auto fail = [&] { throw UsageError("{}={} does not read like 2(x3),1", name, text); };
  const auto number = [&] {
    int value = 0;
    const auto [next, error] = std::from_chars(at, end, value);
    if (error != std::errc() || value < 1) fail();
    at = next;
    return value;
  };
  while (at != end) {
    const int count = number();
    int times = 1;
    if (end - at > 2 && at[0] == '(' && at[1] == 'x') {
      at += 2;
      times = number();
      if (at == end || *at++ != ')' || times > kMostNodes - static_cast<int>(tasks.size())) fail();
    }
    tasks.insert(tasks.end(), static_cast<std::size_t>(times), count);
    if (at != end && *at++ != ',') fail();
  }
  return tasks;
}

LaunchEnv read_slurm(const Variables& env) {
  const char* size_name = env.is_set("SLURM_STEP_NUM_TASKS") ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS";
  const char* nodes_name = env.is_set("SLURM_STEP_NUM_NODES") ? "SLURM_STEP_NUM_NODES" : "SLURM_NNODES";
  LaunchEnv result;
  result.launcher = "srun";
  result.rank = env.required("SLURM_PROCID", "SLURM_STEP_ID");
  result.size = env.required(size_name, "SLURM_PROCID");
  check_below("SLURM_PROCID", result.rank, size_name, result.size);
  result.nodes = env.number(nodes_name).value_or(1);
  result.node = env.number("SLURM_NODEID").value_or(0);
  check_below("SLURM_NODEID", result.node, nodes_name, result.nodes);
  result.local_rank = env.number("SLURM_LOCALID").value_or(result.nodes == 1 ? result.rank : 0);
  result.local_size = result.nodes == 1 ? result.size : 1;
  for (const char* name : {"SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"}) {
    if (!env.is_set(name)) continue;
    const std::vector<int> tasks = tasks_per_node(name, env.text(name));
    if (static_cast<std::size_t>(result.node) >= tasks.size()) {
      throw UsageError("{}={} does not reach SLURM_NODEID={}", name, env.text(name), result.node);
    }
    result.local_size = tasks[static_cast<std::size_t>(result.node)];
    break;
  }
  check_below("SLURM_LOCALID", result.local_rank, "ranks on this node", result.local_size);
  result.job = "slurm-" + env.first_text({"SLURM_JOB_ID", "SLURM_JOBID"}) + "." + env.text("SLURM_STEP_ID");
  return result;
}

}  // namespace

LaunchEnv read_launch_env(const GetEnv& get_env) {
  const Variables env(get_env);
  if (env.is_set("TUTTI_RANK") || env.is_set("TUTTI_SIZE")) {
    LaunchEnv result = read_numbers(
        env, {"TUTTI_RANK", "TUTTI_SIZE", "TUTTI_LOCAL_RANK", "TUTTI_LOCAL_SIZE", "TUTTI_NODE", "TUTTI_NODES"},
        "tutti");
    result.job = env.text("TUTTI_JOB");
    return result;
  }
  if (env.is_set("OMPI_COMM_WORLD_RANK") || env.is_set("OMPI_COMM_WORLD_SIZE")) {
    LaunchEnv result = read_numbers(env,
                                    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
                                     "OMPI_COMM_WORLD_LOCAL_SIZE", nullptr, nullptr},
                                    "mpirun");
    result.job = "ompi-" + env.first_text({"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"});
    return result;
  }
  // Before Slurm: mpirun of MPICH inside a Slurm job sets both. srun sets PMI_RANK too when Slurm's PMI is on, with
  // the same meaning but without the node: there Slurm's own variables know more.
  const bool by_srun = env.is_set("SLURM_STEP_ID") && env.is_set("SLURM_PROCID");
  const bool same_as_srun = by_srun && env.number("PMI_RANK") == env.number("SLURM_PROCID") &&
                            env.number("PMI_SIZE") == env.number({"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"});
  if ((env.is_set("PMI_RANK") || env.is_set("PMI_SIZE")) && !same_as_srun) {
    LaunchEnv result =
        read_numbers(env, {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", nullptr, nullptr}, "mpirun");
    // MPICH names no job. All ranks of a node are children of one proxy, and a name matters only on one node.
    result.job = "pmi-" + std::to_string(getppid());
    return result;
  }
  if (by_srun) return read_slurm(env);
  // RANK alone is too common a name to mean anything.
  if (env.is_set("RANK") && env.is_set("WORLD_SIZE")) {
    LaunchEnv result = read_numbers(
        env, {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE"}, "torchrun");
    result.job = "torch-" + env.text("TORCHELASTIC_RUN_ID") + "-" + env.text("MASTER_PORT");
    return result;
  }
  return {};
}

LaunchEnv read_launch_env() {
  return read_launch_env([](const char* name) -> std::optional<std::string> {
    const char* value = std::getenv(name);
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  });
}

}  // namespace tutti
