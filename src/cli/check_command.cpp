#include "cli/check_command.h"

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/files.h"
#include "cli/json_output.h"
#include "cli/rank_arguments.h"
#include "comm/connect.h"
#include "comm/mpi/mpi.h"
#include "probe/check_report.h"
#include "tutti/error.h"

namespace tutti {
namespace {

struct CheckArguments {
  RankArguments ranks;
  std::string model, json_file;
  std::string runs_folder = "runs";
  double link_gbps = 0;
  bool as_json = false;
};

int run(const CheckArguments& arguments, const AskTorch& ask_torch) {
  if (arguments.link_gbps < 0) throw UsageError("--link-gbps is {}: it must be 0 or more", arguments.link_gbps);
  const LaunchEnv env = read_launch_env();
  CheckOptions options;
  options.torch = ask_torch(arguments.model);  // before ranks are started, so that an unknown model is one message
  if (const auto code = arguments.ranks.launch_unless_rank(env)) return *code;
  options.runs_folder = arguments.runs_folder;
  options.link_gbps = arguments.link_gbps;
  const auto start = Clock::now();
  std::unique_ptr<Communicator> comm;
  try {
    comm = arguments.ranks.connect(env);
  } catch (const CommFailed& error) {
    // Whoever sees it says so: rank 0 may be the one that is missing.
    const CheckReport nobody{{}, {}, {}, {}, {{Severity::problem, "ranks", error.what()}}};
    if (arguments.as_json && arguments.json_file.empty() && env.rank == 0)
      print_json(to_json(nobody));
    else
      fmt::print(arguments.as_json ? stderr : stdout, "{}\n", line_of(nobody.findings.front()));
    std::fflush(stdout);
    return 1;
  }
  options.connect_s = seconds_since(start);
  if (find_transport(comm->name()).started_by_mpirun) options.mpi = start_mpi().library;
  if (arguments.ranks.on_gpus())
    options.gpu = arguments.ranks.own_gpu(env, static_cast<int>(options.torch.gpus.size()));
  options.gpu_timeout = std::chrono::milliseconds(static_cast<int64_t>(arguments.ranks.timeout_s * 1000));
  const CheckReport report = run_check(*comm, options);
  if (comm->rank() == 0) {
    if (arguments.as_json && arguments.json_file.empty())
      print_json(to_json(report));
    else
      fmt::print("{}", describe(report));
    std::fflush(stdout);
    if (!arguments.json_file.empty()) write_file_atomically(arguments.json_file, to_json(report).dump(1) + "\n");
  }
  comm->barrier()->wait();  // nobody leaves while others still need them
  return has_problem(report.findings) ? 1 : 0;
}

}  // namespace

std::function<int()> add_check_command(CLI::App& program, AskTorch ask_torch) {
  auto arguments = std::make_shared<CheckArguments>();
  CLI::App* command = program.add_subcommand("check", "look at ranks, machines and links before training, in seconds");
  command->add_option("--model", arguments->model, "also compare this model's parameters; `tutti models` lists them");
  command
      ->add_option("--link-gbps", arguments->link_gbps,
                   "what links between nodes should carry; 0: compare them with each other, which takes three nodes")
      ->capture_default_str();
  command->add_option("--runs", arguments->runs_folder, "folder that holds the runs: is there room?")
      ->capture_default_str();
  CLI::Option* const json =
      command
          ->add_option("--json", arguments->json_file,
                       "write all that was seen to this file; without one, print it as JSON instead of the table")
          ->expected(0, 1);
  arguments->ranks.add_to(*command);
  command->footer(
      "Started as the training will be:\n"
      "  tutti check --ranks 2                       this machine\n"
      "  tutti check --hosts node1:2,node2:2         several, by mpirun\n"
      "  mpirun -np 4 --hostfile hosts tutti check   the same by hand; also under srun\n"
      "  tutti check --ranks 8 --transport nccl      also whether the ranks' GPUs work together\n"
      "A table by node, then a line for each finding. ok: as it should be. warning: costs time or comfort, such as a\n"
      "link under half of what is usual. problem: training cannot be trusted, such as another binary on one node.\n"
      "Exit code: 0 without problems, 1 with one, 2 for what cannot be meant.");
  return [arguments, json, ask = std::move(ask_torch)] {
    arguments->as_json = json->count() > 0;
    return run(*arguments, ask);
  };
}

}  // namespace tutti
