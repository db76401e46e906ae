#include "cli/run_command.h"

#include <algorithm>
#include <memory>

#include "cli/rank_arguments.h"
#include "comm/launch_env.h"
#include "launch/mpirun.h"
#include "launch/restarts.h"
#include "options/train_options.h"
#include "tutti/error.h"

namespace tutti {
namespace {

struct RunArguments {
  int ranks = -1;  // -1: not given
  std::string hosts;
  int threads = -1;
  int max_restarts = 0;
  std::vector<std::string> program;
};

int run(const RunArguments& arguments) {
  const LaunchEnv env = read_launch_env();
  if (!env.launcher.empty())
    throw UsageError("{} has started {} processes already: let it start the program itself, without `tutti run`",
                     env.launcher, env.size);
  const int slots = arguments.hosts.empty() ? 0 : count_slots(arguments.hosts);
  if (slots == 0 && arguments.ranks == -1) throw UsageError("how many ranks? Give -n N, or --hosts HOST:RANKS,…");
  if (slots > 0 && arguments.ranks != -1 && arguments.ranks != slots)
    throw UsageError("-n {} contradicts --hosts {}, which has places for {}: leave -n out", arguments.ranks,
                     arguments.hosts, slots);
  const int ranks = slots > 0 ? slots : arguments.ranks;
  if (ranks < 1 || ranks > kMostRanks) throw UsageError("-n is {}: it must be from 1 to {}", ranks, kMostRanks);
  if (arguments.threads == 0 || arguments.threads < -1)
    throw UsageError("--threads is {}: it must be at least 1", arguments.threads);
  if (arguments.max_restarts < 0)
    throw UsageError("--max-restarts is {}: it must be at least 0", arguments.max_restarts);

  LaunchOptions launch;
  launch.threads = arguments.threads != -1 ? arguments.threads : default_threads(available_cores() / ranks);
  if (slots > 0) {
    launch.is_launcher = true;
    launch.command = mpirun_command(arguments.hosts, ranks);
  } else {
    launch.ranks = ranks;
  }
  launch.command.insert(launch.command.end(), arguments.program.begin(), arguments.program.end());
  return launch_with_restarts(launch, arguments.max_restarts, {}, [](LaunchOptions&) -> std::string {
    return "from the program's own checkpoint, if it has one";
  });
}

}  // namespace

std::function<int()> add_run_command(CLI::App& program) {
  auto arguments = std::make_shared<RunArguments>();
  CLI::App* command = program.add_subcommand("run", "start ranks of any program");
  command->add_option("-n,--ranks", arguments->ranks, "processes to start on this machine");
  command->add_option("--hosts", arguments->hosts, "HOST:RANKS,…: start ranks on these machines, by mpirun");
  command->add_option("--threads", arguments->threads,
                      "of each rank (OMP_NUM_THREADS), on this machine; unset: its share of the cores");
  command
      ->add_option("--max-restarts", arguments->max_restarts,
                   "start all ranks again, so many times at most, when one has failed")
      ->capture_default_str();
  command->add_option("PROGRAM", arguments->program, "after --: the program, looked up in PATH, and its arguments")
      ->required()
      ->expected(1, -1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->footer(
      "Each rank finds its place in TUTTI_RANK, TUTTI_SIZE, …; with --hosts, in mpirun's variables.\n"
      "Examples:\n"
      "  tutti run -n 4 -- ./my_program --its-option 3\n"
      "  tutti run --hosts a:2,b:2 -- python3 train.py");
  return [arguments] { return run(*arguments); };
}

}  // namespace tutti
