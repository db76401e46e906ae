#include "cli/train_command.h"

#include <algorithm>
#include <filesystem>
#include <memory>

#include "cli/option_arguments.h"
#include "cli/rank_arguments.h"
#include "cli/recipe.h"
#include "comm/launch_env.h"
#include "comm/transport.h"
#include "launch/mpirun.h"
#include "launch/restarts.h"
#include "train/checkpoint.h"
#include "train/options.h"
#include "train/stop_signal.h"
#include "train/torch_facts.h"
#include "train/trainer.h"
#include "tutti/error.h"

namespace tutti {
namespace {

void describe(CLI::App& command, TrainOptions& options, bool& as_markdown) {
  add_options(command, train_option_table(options, known_names()));
  command.add_flag("--help-markdown", as_markdown, "print all options as docs/reference/train-options.md has them");
  command.footer(
      "Examples:\n"
      "  tutti train                                          built-in digits, every core\n"
      "  tutti train --recipe resnet18-mnist --ranks 2        a published experiment; --recipe list shows all\n"
      "  tutti train --data mnist --ranks 2 --strategy wfbp   MNIST with wait-free backpropagation\n"
      "  tutti train --name first --checkpoint-steps 200      … interrupted …\n"
      "  tutti train --resume first                           goes on where it was\n"
      "Everything measured is in runs/NAME/records.jsonl, the weights in runs/NAME/model.safetensors.");
}

int default_ranks(const TrainOptions& options, int cores) {
  const int gpus = options.device != "cpu" ? gpu_count() : 0;
  if (gpus > 0) return gpus;
  return std::min(cores, 8);
}

int run(TrainOptions& options) {
  if (options.recipe == "list") {
    fmt::print("{}", list_recipes());
    return 0;
  }
  check_options(options);
  const bool saves = options.checkpoint_steps > 0 || options.checkpoint_minutes > 0;
  if (options.max_restarts > 0 && (options.name.empty() || !saves))
    throw UsageError(
        "--max-restarts needs --name, and --checkpoint-steps or --checkpoint-minutes: what it goes on from");
  if (options.auto_resume && (options.name.empty() || !options.resume.empty()))
    throw UsageError("--auto-resume goes on with the run of --name: {}",
                     options.name.empty() ? "give one" : "leave --resume out");

  LaunchEnv env = read_launch_env();
  const int cores = available_cores();
  const bool is_launched = !env.launcher.empty();
  const int servers = options.strategy_options.servers;
  if (is_launched && env.launcher != "tutti" && options.ranks != -1 && options.ranks + servers != env.size)
    throw UsageError("--ranks {} contradicts {}, which started {} processes{}: leave --ranks out", options.ranks,
                     env.launcher, env.size, servers > 0 ? fmt::format(", of which {} are servers", servers) : "");
  const int slots = options.hosts.empty() ? 0 : count_slots(options.hosts);
  if (slots > 0 && options.ranks != -1 && options.ranks + servers != slots)
    throw UsageError("--ranks {}{} contradicts --hosts {}, which has places for {}: leave --ranks out", options.ranks,
                     servers > 0 ? fmt::format(" with --servers {}", servers) : "", options.hosts, slots);
  const int ranks = is_launched           ? env.size - servers
                    : slots > 0           ? slots - servers
                    : options.ranks != -1 ? options.ranks
                                          : default_ranks(options, cores);
  const int local_ranks = std::max(1, is_launched ? env.local_size - (env.nodes == 1 ? servers : 0) : ranks);
  if (options.threads == -1) options.threads = default_threads(cores / local_ranks);
  if (servers > 0 && options.strategy != kAutoStrategy && !find_strategy(options.strategy).uses_servers)
    throw UsageError("--servers {}: strategy {} uses none; those that do end in -ps", servers, options.strategy);
  if (servers > 0 && ranks < 2)
    throw UsageError("--servers {} with {} rank{}: servers add up what two or more ranks push", servers,
                     std::max(0, ranks), ranks == 1 ? "" : "s");

  options.ranks = ranks;
  const bool by_mpirun = !options.hosts.empty() ||
                         (options.transport != kAutoTransport && find_transport(options.transport).started_by_mpirun);
  if (is_launched || (ranks == 1 && !by_mpirun && options.max_restarts == 0)) return train(options, env);
  LaunchOptions launch;
  launch.threads = options.threads;
  launch.quiet_code = kExitSaved;
  std::vector<std::string> own = own_command_line();
  if (by_mpirun) {
    launch.is_launcher = true;
    launch.command = mpirun_command(options.hosts, ranks + servers);
  } else {
    launch.ranks = ranks + servers;
    own[0] = "/proc/self/exe";
  }
  launch.command.insert(launch.command.end(), own.begin(), own.end());
  if (options.max_restarts > 0) launch.command.emplace_back("--auto-resume");
  return launch_with_restarts(launch, options.max_restarts, [&] {
    const bool has_saved = has_checkpoint(std::filesystem::path(options.runs_folder) / options.name);
    return has_saved ? "from the last checkpoint" : "from the beginning: nothing has been saved yet";
  });
}

}  // namespace

std::function<int()> add_train_command(CLI::App& program) {
  auto options = std::make_shared<TrainOptions>();
  auto as_markdown = std::make_shared<bool>(false);
  CLI::App* command = program.add_subcommand("train", "train a model on one or many ranks");
  describe(*command, *options, *as_markdown);
  return [options, as_markdown] {
    if (!*as_markdown) return run(*options);
    fmt::print("{}", options_page(known_names()));
    return 0;
  };
}

}  // namespace tutti
