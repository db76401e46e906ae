#include "cli/train_command.h"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <functional>
#include <memory>

#include "cli/option_arguments.h"
#include "cli/rank_arguments.h"
#include "cli/recipe.h"
#include "comm/launch_env.h"
#include "comm/transport.h"
#include "launch/mpirun.h"
#include "launch/rank_environment.h"
#include "launch/restarts.h"
#include "status/status_report.h"
#include "train/checkpoint_folder.h"
#include "train/failures.h"
#include "train/options.h"
#include "train/stop_signal.h"
#include "train/torch_facts.h"
#include "train/trainer.h"
#include "tutti/error.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

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

/// Whether an option was given, on the command line or in a recipe.
using IsGiven = std::function<bool(const std::string& name)>;

/// A run that goes on has the options that it had, unless they are given anew. Returns the folder that it saves in;
/// empty where only rank 0 will know.
fs::path continue_run(TrainOptions& options, const LaunchEnv& env, const IsGiven& is_given) {
  fs::path named = options.name.empty() ? fs::path() : fs::path(options.runs_folder) / options.name;
  if (options.resume.empty() && (!options.auto_resume || checkpoints_in(named).empty())) return named;
  const ResumeChoice choice = options.resume.empty() ? find_checkpoints(named.string(), {})
                                                     : find_checkpoints(options.resume, options.runs_folder);
  const TrainOptions had = saved_options(choice);
  // Who has started ranks, or says where, has said how many. Threads belong to their number.
  const bool has_ranks =
      !env.launcher.empty() || !options.hosts.empty() || (is_given("ranks") && options.ranks != had.ranks);
  take_over(options, had, [&](const std::string& name) {
    return is_given(name) || (has_ranks && (name == "ranks" || name == "threads"));
  });
  return named.empty() ? run_of(choice.folders[0]) : named;
}

int run(TrainOptions& options, const IsGiven& is_given, const RunHere& run_here) {
  if (options.recipe == "list") {
    fmt::print("{}", list_recipes());
    return 0;
  }
  ::signal(SIGPIPE, SIG_IGN);  // `tutti train | head`: what cannot be written is no reason to stop
  if (options.auto_resume && (options.name.empty() || !options.resume.empty()))
    throw UsageError("--auto-resume goes on with the run of --name: {}",
                     options.name.empty() ? "give one" : "leave --resume out");
  if (options.max_restarts > 0 && !options.name.empty() && options.resume.empty()) options.auto_resume = true;
  if (const std::string suits = is_given("model") ? "" : usual_model(options.data.name); !suits.empty())
    options.model = suits;
  check_options(options);  // before it is mixed with what is not a mistake of this command
  LaunchEnv env = read_launch_env();
  const fs::path run_folder = continue_run(options, env, is_given);
  check_options(options);
  if (options.max_restarts > 0 && (run_folder.empty() || !options.saves_checkpoints()))
    throw UsageError(
        "--max-restarts needs --name, and --checkpoint-steps or --checkpoint-minutes: what it goes on from");

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
  launch.stop_limit = std::chrono::milliseconds(static_cast<int64_t>(options.comm_timeout_s * 1000));
  const std::filesystem::path folder = status_folder(options.runs_folder, make_job_name());
  ::setenv(kStatusVariable, folder.c_str(), /*overwrite=*/1);
  std::vector<std::string> own = own_command_line();
  if (by_mpirun) {
    launch.is_launcher = true;
    launch.launched = ranks + servers;
    launch.command = mpirun_command(options.hosts, ranks + servers);
    launch.command.insert(launch.command.end(), {"-x", kStatusVariable});
  } else {
    launch.ranks = ranks + servers;
    launch.run_here = run_here;
    own[0] = "/proc/self/exe";
  }
  launch.command.insert(launch.command.end(), own.begin(), own.end());
  launch.status = [folder] { return describe(read_job(folder)); };
  const auto goes_on = [&](LaunchOptions& again) -> std::string {
    if (checkpoints_in(run_folder).empty()) return "from the beginning: nothing has been saved yet";
    // What comes last counts: a --resume before it has named what the run began from.
    if (!options.resume.empty()) again.command.insert(again.command.end(), {"--resume", run_folder.string()});
    return "from the last checkpoint";
  };
  // A loss that is not finite would come again.
  return launch_with_restarts(launch, options.max_restarts, {kExitSaved, kExitNotFinite}, goes_on);
}

}  // namespace

std::string problem_of_train_option(const std::string& name, const std::string& value) {
  if (name != "recipe") return problem_of_value(name, value, known_names());
  try {
    find_recipe(value, problem_of_train_option);
    return "";
  } catch (const UsageError& error) {
    return error.what();
  }
}

std::function<int()> add_train_command(CLI::App& program, RunHere run_here) {
  auto options = std::make_shared<TrainOptions>();
  auto as_markdown = std::make_shared<bool>(false);
  CLI::App* command = program.add_subcommand("train", "train a model on one or many ranks");
  describe(*command, *options, *as_markdown);
  return [options, as_markdown, command, run_here = std::move(run_here)] {
    const auto is_given = [command](const std::string& name) {
      const CLI::Option* const option = name.empty() ? nullptr : command->get_option_no_throw("--" + name);
      return option != nullptr && option->count() > 0;
    };
    if (!*as_markdown) return run(*options, is_given, run_here);
    fmt::print("{}", options_page(known_names()));
    return 0;
  };
}

}  // namespace tutti
