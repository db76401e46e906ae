#include "cli/train_command.h"

#include <fmt/ranges.h>
#include <torch/cuda.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "cli/option_names.h"
#include "cli/rank_arguments.h"
#include "cli/recipe.h"
#include "cli/strategy_arguments.h"
#include "comm/launch_env.h"
#include "comm/transport.h"
#include "launch/launcher.h"
#include "launch/mpirun.h"
#include "train/checkpoint.h"
#include "train/options.h"
#include "train/stop_signal.h"
#include "train/trainer.h"
#include "tutti/error.h"

namespace tutti {
namespace {

constexpr int kMostRanks = 64;

struct TrainArguments {
  TrainOptions options;
  int ranks = -1;    // -1: not given
  int threads = -1;  // -1: not given
  StrategyArguments strategy;
  double comm_timeout_s = 300;
  std::string hosts;
  int max_restarts = 0;
  bool no_eval = false;
};

void describe(CLI::App& command, TrainArguments& arguments) {
  TrainOptions& options = arguments.options;
  OptimizerOptions& optimizer = options.engine.optimizer;
  optimizer.momentum = 0.9;

  command
      .add_option("--recipe", options.recipe,
                  "options from a file, or from recipes/NAME.yaml; further options override it; list: which there are")
      ->group("What to train");
  command.add_option("--model", options.model, "the network to train; `tutti models` lists them")
      ->group("What to train");
  command
      .add_option("--width", options.model_options.width,
                  "unet: channels of the first level; transformer, bert: features of a token; unset: the model's own")
      ->group("What to train");
  command
      .add_option("--depth", options.model_options.depth,
                  "unet: levels; transformer, bert: layers; unset: the model's own")
      ->group("What to train");
  command
      .add_option("--weights", options.weights_file,
                  "start from these: a .safetensors file of Tutti's, torchvision's or Hugging Face's")
      ->group("What to train");
  command
      .add_option("--data", options.data.name,
                  "the samples: digits (drawn by Tutti itself), mnist, …; `tutti data` lists them")
      ->group("What to train");
  command
      .add_option("--data-folder", options.data.folder,
                  "where the files are; else $TUTTI_DATA/NAME, data/NAME, ../shared/data/NAME")
      ->group("What to train");
  command.add_option("--train-size", options.data.train_size, "samples to draw, for generated data; 0: its default")
      ->group("What to train");
  command.add_option("--test-size", options.data.test_size, "test samples to draw; 0: its default")
      ->group("What to train");
  command
      .add_flag_function(
          "--augment,!--no-augment", [&options](int64_t wanted) { options.data.augment = wanted > 0; },
          "vary training images from epoch to epoch; unset: what suits the data")
      ->group("What to train");
  command.add_option("--tokens", options.data.tokens, "text: tokens per sample; 0: 64")->group("What to train");
  command.add_option("--vocabulary", options.data.vocabulary, "text: file of WordPiece tokens, one a line")
      ->group("What to train");
  command.add_flag("--data-phrases", options.data.phrases, "sst5: train on every phrase, not only on whole sentences")
      ->group("What to train");
  command.add_option("--epochs", options.epochs, "passes over the training data")
      ->capture_default_str()
      ->group("What to train");
  command.add_option("--steps", options.steps, "stop after so many steps in all, instead of --epochs")
      ->group("What to train");
  command.add_option("--batch", options.batch, "samples per rank and micro-batch")
      ->capture_default_str()
      ->group("What to train");
  command.add_option("--accumulate", options.accumulate, "micro-batches per step")
      ->capture_default_str()
      ->group("What to train");
  command.add_option("--seed", options.seed, "decides weights, order of samples and dropout")
      ->capture_default_str()
      ->group("What to train");

  command.add_option("--optimizer", optimizer.name, fmt::format("{}", fmt::join(optimizer_names(), ", ")))
      ->capture_default_str()
      ->group("Optimizer");
  command.add_option("--lr", options.learning_rate, "learning rate; unset: 0.05 for sgd, 0.001 for adam and adamw")
      ->group("Optimizer");
  command.add_flag("--scale-lr", options.scale_lr, "multiply the learning rate by the number of ranks")
      ->group("Optimizer");
  command.add_option("--momentum", optimizer.momentum, "for sgd")->capture_default_str()->group("Optimizer");
  command.add_flag("--nesterov", optimizer.nesterov, "Nesterov momentum, for sgd")->group("Optimizer");
  command.add_option("--beta1", optimizer.beta1, "for adam and adamw")->capture_default_str()->group("Optimizer");
  command.add_option("--beta2", optimizer.beta2, "for adam and adamw")->capture_default_str()->group("Optimizer");
  command.add_option("--epsilon", optimizer.epsilon, "for adam and adamw")->capture_default_str()->group("Optimizer");
  command.add_option("--weight-decay", optimizer.weight_decay, "L2 for sgd and adam, decoupled for adamw")
      ->group("Optimizer");
  command.add_option("--clip-norm", options.engine.clip_norm, "clip gradients to this global norm; 0: never")
      ->group("Optimizer");
  command.add_option("--schedule", options.schedule.name, "constant, step or cosine")
      ->capture_default_str()
      ->group("Optimizer");
  command.add_option("--warmup", options.schedule.warmup_steps, "steps of linear warm-up before the schedule")
      ->group("Optimizer");
  command.add_option("--step-epochs", options.schedule.step_epochs, "schedule step: epochs between reductions")
      ->capture_default_str()
      ->group("Optimizer");
  command.add_option("--gamma", options.schedule.gamma, "schedule step: factor of each reduction")
      ->capture_default_str()
      ->group("Optimizer");

  command
      .add_option("--ranks", arguments.ranks,
                  "processes that train together; unset: one per core (8 at most), or per GPU")
      ->group("Ranks");
  command.add_option("--threads", arguments.threads, "threads per rank; unset: OMP_NUM_THREADS, or cores / ranks")
      ->group("Ranks");
  arguments.strategy.add_to(command, "Ranks", /*offers_auto=*/true);
  command
      .add_option("--wire", options.engine.wire,
                  "how gradients travel: fp32; fp16 or bf16 halve the bytes; topk (the largest) or sign (a bit each) "
                  "leave most of them for later steps. All but fp32 change the mathematics")
      ->capture_default_str()
      ->group("Ranks");
  command.add_option("--topk-ratio", options.engine.topk_ratio, "wire format topk: part of the gradients that travels")
      ->capture_default_str()
      ->group("Ranks");
  command
      .add_option("--node-ranks", options.ranks_per_node,
                  "…-ps: ranks that add up among themselves before one of them talks to the servers")
      ->capture_default_str()
      ->group("Ranks");
  command
      .add_option("--link-gbps", options.link_gbps,
                  "pretend that links carry this many Gbit/s, for experiments; 0: as they are")
      ->group("Ranks");
  command
      .add_option("--link-startup-us", options.link_startup_us, "pretend that each collective starts up this slowly")
      ->group("Ranks");
  command.add_option("--transport", options.transport, transport_help())->capture_default_str()->group("Ranks");
  command
      .add_flag("--by-node", options.by_node,
                "mpi: add up inside each node through shared memory, then send from one rank of each")
      ->group("Ranks");
  command
      .add_option(
          "--hosts", arguments.hosts,
          "HOST:RANKS,…: start ranks on these machines, by mpirun; Tutti and the data lie at the same places there")
      ->group("Ranks");
  command
      .add_option("--max-restarts", arguments.max_restarts,
                  "after a failure go on from the last checkpoint, at most so often")
      ->capture_default_str()
      ->group("Ranks");
  command
      .add_option("--comm-timeout", arguments.comm_timeout_s,
                  "seconds after which a transfer that makes no progress ends the run")
      ->capture_default_str()
      ->group("Ranks");
  command.add_option("--device", options.device, "auto, cpu or cuda; ranks share GPUs when there are more of them")
      ->capture_default_str()
      ->group("Ranks");
  command.add_option("--precision", options.precision, "fp32; on cuda also tf32 (its matrix products) or bf16")
      ->capture_default_str()
      ->group("Ranks");
  command
      .add_flag("--checkpoint-activations", options.model_options.checkpoint_activations,
                "less memory, more time: compute activations again in backward (unet, transformer, bert)")
      ->group("Ranks");
  command
      .add_flag("--deterministic", options.deterministic,
                "cuda: only kernels that give the same bits every time; a cpu always does")
      ->group("Ranks");
  command.add_option("--workers", options.workers, "loader threads per rank; 0: load in the training thread")
      ->capture_default_str()
      ->group("Ranks");

  command.add_option("--name", options.name, "of the run; unset: time, model and data")->group("Results");
  command.add_option("--runs", options.runs_folder, "folder that holds the runs")
      ->capture_default_str()
      ->group("Results");
  command.add_option("--summary", options.summary_file, "write a summary to this file, one JSON object")
      ->group("Results");
  command
      .add_option("--trace", options.trace_file,
                  "write what every rank does in a few steps to this file, for Perfetto or chrome://tracing")
      ->group("Results");
  command.add_option("--trace-steps", options.trace_steps, "how many steps, from shortly after the plan is made")
      ->capture_default_str()
      ->group("Results");
  command.add_option("--log-every", options.log_every, "steps between throughput lines")
      ->capture_default_str()
      ->group("Results");
  command.add_option("--eval-every", options.eval_every, "epochs between tests")
      ->capture_default_str()
      ->group("Results");
  command.add_option("--eval-batch", options.eval_batch, "samples per rank and test batch")
      ->capture_default_str()
      ->group("Results");
  command.add_flag("--no-eval", arguments.no_eval, "do not test")->group("Results");
  command.add_option("--checkpoint-steps", options.checkpoint_steps, "save a checkpoint every so many steps")
      ->group("Results");
  command.add_option("--checkpoint-minutes", options.checkpoint_minutes, "save a checkpoint every so many minutes")
      ->group("Results");
  command.add_option("--keep-checkpoints", options.keep_checkpoints, "older ones are removed")
      ->capture_default_str()
      ->group("Results");
  command.add_option("--resume", options.resume, "continue: a run's name or folder, or a checkpoint's folder")
      ->group("Results");
  command
      .add_flag("--auto-resume", options.auto_resume,
                "go on with the run --name if it has a checkpoint, else start it: for jobs that are started again")
      ->group("Results");
  command.footer(
      "Examples:\n"
      "  tutti train                                          built-in digits, every core\n"
      "  tutti train --recipe resnet18-mnist --ranks 2        a published experiment; --recipe list shows all\n"
      "  tutti train --data mnist --ranks 2 --strategy wfbp   MNIST with wait-free backpropagation\n"
      "  tutti train --name first --checkpoint-steps 200      … interrupted …\n"
      "  tutti train --resume first                           goes on where it was\n"
      "Everything measured is in runs/NAME/records.jsonl, the weights in runs/NAME/model.safetensors.");
}

/// What OMP_NUM_THREADS says, or else a rank's share of the cores.
int default_threads(int share) {
  const char* const text = std::getenv("OMP_NUM_THREADS");
  const int wanted = text == nullptr ? 0 : std::atoi(text);
  return wanted > 0 ? wanted : std::max(1, share);
}

int default_ranks(const TrainOptions& options, int cores) {
  if (options.device != "cpu" && torch::cuda::is_available()) return static_cast<int>(torch::cuda::device_count());
  return std::min(cores, 8);
}

int launch_with_restarts(LaunchOptions launch, const TrainArguments& arguments) {
  const TrainOptions& options = arguments.options;
  if (arguments.max_restarts > 0) launch.command.emplace_back("--auto-resume");
  for (int restart = 0;; ++restart) {
    const int code = launch_ranks(launch);
    const bool is_final = code == 0 || code == kExitUsage || code == kExitSaved || code == 128 + SIGINT ||
                          code == 128 + SIGTERM || code == 128 + SIGHUP;
    if (is_final || restart == arguments.max_restarts) return code;
    const bool has_saved = has_checkpoint(std::filesystem::path(options.runs_folder) / options.name);
    fmt::print(stderr, "tutti: restart {} of {}, {}\n", restart + 1, arguments.max_restarts,
               has_saved ? "from the last checkpoint" : "from the beginning: nothing has been saved yet");
  }
}

int run(TrainArguments& arguments, const CLI::App& command) {
  TrainOptions& options = arguments.options;
  if (options.recipe == "list") {
    fmt::print("{}", list_recipes(option_names(command)));
    return 0;
  }
  options.evaluate = !arguments.no_eval;
  options.engine.strategy = arguments.strategy.name;
  options.engine.strategy_options = arguments.strategy.options();
  options.engine.comm_timeout = std::chrono::milliseconds(static_cast<int64_t>(arguments.comm_timeout_s * 1000));
  if (arguments.ranks == 0 || arguments.ranks < -1 || arguments.ranks > kMostRanks)
    throw UsageError("--ranks is {}: it must be from 1 to {}", arguments.ranks, kMostRanks);
  if (arguments.comm_timeout_s <= 0)
    throw UsageError("--comm-timeout is {}: it must be above 0", arguments.comm_timeout_s);

  if (arguments.max_restarts < 0)
    throw UsageError("--max-restarts is {}: it must be 0 or more", arguments.max_restarts);
  const bool saves = options.checkpoint_steps > 0 || options.checkpoint_minutes > 0;
  if (arguments.max_restarts > 0 && (options.name.empty() || !saves))
    throw UsageError(
        "--max-restarts needs --name, and --checkpoint-steps or --checkpoint-minutes: what it goes on from");
  if (options.auto_resume && (options.name.empty() || !options.resume.empty()))
    throw UsageError("--auto-resume goes on with the run of --name: {}",
                     options.name.empty() ? "give one" : "leave --resume out");

  LaunchEnv env = read_launch_env();
  const int cores = available_cores();
  const bool is_launched = !env.launcher.empty();
  const int servers = options.engine.strategy_options.servers;
  if (is_launched && env.launcher != "tutti" && arguments.ranks != -1 && arguments.ranks + servers != env.size)
    throw UsageError("--ranks {} contradicts {}, which started {} processes{}: leave --ranks out", arguments.ranks,
                     env.launcher, env.size, servers > 0 ? fmt::format(", of which {} are servers", servers) : "");
  const int slots = arguments.hosts.empty() ? 0 : count_slots(arguments.hosts);
  if (slots > 0 && arguments.ranks != -1 && arguments.ranks + servers != slots)
    throw UsageError("--ranks {}{} contradicts --hosts {}, which has places for {}: leave --ranks out", arguments.ranks,
                     servers > 0 ? fmt::format(" with --servers {}", servers) : "", arguments.hosts, slots);
  const int ranks = is_launched             ? env.size - servers
                    : slots > 0             ? slots - servers
                    : arguments.ranks != -1 ? arguments.ranks
                                            : default_ranks(options, cores);
  const int local_ranks = is_launched ? std::max(1, env.local_size - (env.nodes == 1 ? servers : 0)) : ranks;
  options.threads = arguments.threads != -1 ? arguments.threads : default_threads(cores / local_ranks);
  check_options(options);
  if (servers > 0 && options.engine.strategy != kAutoStrategy && !find_strategy(options.engine.strategy).uses_servers)
    throw UsageError("--servers {}: strategy {} uses none; those that do end in -ps", servers, options.engine.strategy);
  if (servers > 0 && ranks < 2)
    throw UsageError("--servers {} with {} rank{}: servers add up what two or more ranks push", servers,
                     std::max(0, ranks), ranks == 1 ? "" : "s");

  const bool by_mpirun = !arguments.hosts.empty() ||
                         (options.transport != kAutoTransport && find_transport(options.transport).started_by_mpirun);
  if (is_launched || (ranks == 1 && !by_mpirun && arguments.max_restarts == 0)) return train(options, env);
  LaunchOptions launch;
  launch.threads = options.threads;
  launch.quiet_code = kExitSaved;
  std::vector<std::string> own = own_command_line();
  if (by_mpirun) {
    launch.is_launcher = true;
    launch.command = mpirun_command(arguments.hosts, ranks + servers);
  } else {
    launch.ranks = ranks + servers;
    own[0] = "/proc/self/exe";
  }
  launch.command.insert(launch.command.end(), own.begin(), own.end());
  return launch_with_restarts(std::move(launch), arguments);
}

}  // namespace

std::function<int()> add_train_command(CLI::App& program) {
  auto arguments = std::make_shared<TrainArguments>();
  CLI::App* command = program.add_subcommand("train", "train a model on one or many ranks");
  describe(*command, *arguments);
  return [arguments, command] { return run(*arguments, *command); };
}

}  // namespace tutti
