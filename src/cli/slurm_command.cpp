#include "cli/slurm_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "base/files.h"
#include "base/names.h"
#include "base/process.h"
#include "cli/option_names.h"
#include "launch/slurm_file.h"
#include "train/stop_signal.h"
#include "tutti/error.h"

namespace tutti {
namespace {

using Words = std::vector<std::string>;

struct SlurmArguments {
  SlurmJob job;
  std::string output;
};

/// The words after --, as they were given.
Words command_words() {
  const Words words = own_words();
  const auto mark = std::find(words.begin(), words.end(), "--");
  return mark == words.end() ? Words() : Words(mark + 1, words.end());
}

/// Throws UsageError at a command or an option that there is not: better now than when the job's turn has come.
void check_names(const CLI::App& program, const Words& words) {
  if (words.empty()) return;
  Words commands;
  for (const CLI::App* command : program.get_subcommands([](const CLI::App*) { return true; }))
    commands.push_back(command->get_name());
  if (std::find(commands.begin(), commands.end(), words.front()) == commands.end()) {
    if (words.front().compare(0, 1, "-") == 0) return;  // no command at all, which slurm_file() says
    throw UsageError("after --: {}", unknown_name("command", words.front(), commands));
  }
  const Words options = option_names(*program.get_subcommand(words.front()));
  for (const std::string& word : words) {
    const std::string name = word.substr(0, word.find('='));
    if (name.compare(0, 2, "--") != 0 || std::find(options.begin(), options.end(), name) != options.end()) continue;
    const std::string nearest = nearest_name(name, options);
    throw UsageError("after --: `tutti {}` has no option '{}'{}", words.front(), name,
                     nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest));
  }
}

int run(const SlurmArguments& arguments, const CLI::App& program) {
  SlurmJob job = arguments.job;
  job.command = command_words();
  job.saved_code = kExitSaved;
  if (job.program.empty()) job.program = std::filesystem::read_symlink("/proc/self/exe").string();
  check_names(program, job.command);
  const std::string text = slurm_file(job);
  if (arguments.output.empty()) {
    fmt::print("{}", text);
    return 0;
  }
  write_file_atomically(arguments.output, text);
  fmt::print("{} is written; start it with: sbatch {}\n", arguments.output, shell_quote(arguments.output));
  return 0;
}

void describe(CLI::App& command, SlurmArguments& arguments) {
  SlurmJob& job = arguments.job;
  job.program.clear();
  command.add_option("--nodes", job.nodes, "machines")->capture_default_str();
  command.add_option("--ranks-per-node", job.ranks_per_node, "processes on each (unset: 1)");
  command.add_option("--ranks", job.ranks, "processes on all nodes together, where they take unequally many");
  command.add_option("--cpus-per-rank,--cpus-per-task", job.cpus_per_rank,
                     "cores of each (unset: what the cluster gives)");
  command.add_option("--gpus-per-node", job.gpus_per_node, "GPUs of each node (unset: none)");
  command.add_option("--time", job.time, "90 (minutes), 1:30:00, 2-12 (days-hours) (unset: the partition's)");
  command.add_option("--partition", job.partition, "which part of the cluster (unset: its default)");
  command.add_option("--job-name", job.name, "what squeue shows (unset: the run's --name, else tutti)");
  command.add_option("--log", job.log, "what the job prints goes here (unset: JOB-NAME-JOB-NUMBER.log)");
  command.add_option("--mpi", job.mpi, "how srun joins the ranks; `srun --mpi=list` shows what a cluster has")
      ->capture_default_str();
  command.add_option("--signal-seconds", job.signal_seconds, "save and stop so long before the job's time is over")
      ->capture_default_str();
  command.add_option("--sbatch", job.lines, "any other option of sbatch: --sbatch account=lab --sbatch exclusive")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->expected(1);
  command.add_option("--tutti", job.program, "the program that nodes run (unset: this one, at the same place)");
  command.add_option("--output", arguments.output, "write the file here (unset: print it)");
  // Only so that words after -- are taken; they are read as they were given.
  command.add_option("command", "after --: the command to run, with its options")->expected(-1);
  command.footer(
      "Writes a file for sbatch that runs a tutti command on a Slurm cluster. When its time is nearly over the run\n"
      "saves, stops, and goes back into the queue; started again, by itself, by Slurm or by you, it goes on from its\n"
      "last checkpoint. For that a `train` without them gets --auto-resume, --name and --checkpoint-minutes.\n\n"
      "Examples:\n"
      "  tutti slurm --nodes 2 --ranks-per-node 2 -- train --model mnist-cnn      look at the file\n"
      "  tutti slurm --nodes 4 --ranks-per-node 8 --gpus-per-node 8 --time 4:00:00 --partition gpu --output job.sh \\\n"
      "    -- train --recipe resnet18-mnist --name run1\n"
      "  sbatch job.sh\n"
      "  tutti slurm --nodes 2 --ranks 5 --sbatch account=lab -- train            3 ranks on a node and 2 on another\n"
      "  scancel --signal=USR1 JOB                                                save now, wait in the queue, go on\n"
      "docs/reference/slurm.md explains.");
}

}  // namespace

std::function<int()> add_slurm_command(CLI::App& program) {
  auto arguments = std::make_shared<SlurmArguments>();
  CLI::App* command = program.add_subcommand("slurm", "write a job file for a Slurm cluster");
  describe(*command, *arguments);
  return [arguments, &program] { return run(*arguments, program); };
}

}  // namespace tutti
