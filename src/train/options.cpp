#include "train/options.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/names.h"
#include "comm/transport.h"
#include "tutti/error.h"
#include "tutti/strategy.h"

namespace tutti {
namespace {

void check_name(const char* kind, const std::string& name, const std::vector<std::string>& known) {
  if (std::find(known.begin(), known.end(), name) == known.end()) throw UsageError(unknown_name(kind, name, known));
}

void at_least(const char* option, double value, double least) {
  if (!(value >= least)) throw UsageError("{} is {}: it must be at least {}", option, value, least);
}

}  // namespace

void check_options(const TrainOptions& options) {
  check_name("model", options.model, model_names());
  check_name("data set", options.data.name, data_names());
  std::vector<std::string> strategies = strategy_names();
  strategies.emplace_back(kAutoStrategy);
  check_name("strategy", options.engine.strategy, strategies);
  check_name("optimizer", options.engine.optimizer.name, optimizer_names());
  check_name("schedule", options.schedule.name, schedule_names());
  check_name("device", options.device, {"auto", "cpu", "cuda"});
  check_name("precision", options.precision, {"fp32", "tf32", "bf16"});
  check_name("transport", options.transport, transport_names());
  if (options.by_node && options.transport != kAutoTransport && !find_transport(options.transport).started_by_mpirun)
    throw UsageError("--by-node joins nodes over MPI: use it with --transport mpi or auto, not {}", options.transport);
  check_name("wire format", options.engine.wire, wire_names());
  at_least("--servers", options.engine.strategy_options.servers, 0);
  at_least("--node-ranks", options.ranks_per_node, 1);
  at_least("--link-startup-us", options.link_startup_us, 0);
  at_least("--link-gbps", options.link_gbps, 0);
  at_least("--epochs", static_cast<double>(options.epochs), 1);
  at_least("--steps", static_cast<double>(options.steps), 0);
  at_least("--batch", static_cast<double>(options.batch), 1);
  at_least("--accumulate", static_cast<double>(options.accumulate), 1);
  at_least("--eval-every", static_cast<double>(options.eval_every), 1);
  at_least("--eval-batch", static_cast<double>(options.eval_batch), 1);
  at_least("--trace-steps", static_cast<double>(options.trace_steps), options.trace_file.empty() ? 0 : 1);
  at_least("--log-every", static_cast<double>(options.log_every), 1);
  at_least("--threads", options.threads, 1);
  at_least("--workers", options.workers, 0);
  at_least("--lr", options.learning_rate, 0);
  at_least("--clip-norm", options.engine.clip_norm, 0);
  at_least("--warmup", static_cast<double>(options.schedule.warmup_steps), 0);
  at_least("--checkpoint-steps", static_cast<double>(options.checkpoint_steps), 0);
  at_least("--checkpoint-minutes", options.checkpoint_minutes, 0);
  at_least("--keep-checkpoints", static_cast<double>(options.keep_checkpoints), 1);
  if (!(options.engine.topk_ratio > 0 && options.engine.topk_ratio <= 1))
    throw UsageError("--topk-ratio is {}: it must be above 0 and at most 1", options.engine.topk_ratio);
  check_wire(options.engine);
  if (options.engine.strategy_options.bucket_bytes < 1 || options.engine.strategy_options.first_bucket_bytes < 1)
    throw UsageError("--bucket-mb and --first-bucket-mb must be above 0");
}

double base_learning_rate(const TrainOptions& options) {
  if (options.learning_rate > 0) return options.learning_rate;
  return find_optimizer(options.engine.optimizer.name).learning_rate;
}

nlohmann::json describe_options(const TrainOptions& options) {
  const OptimizerOptions& optimizer = options.engine.optimizer;
  return {{"recipe", options.recipe},
          {"model", options.model},
          {"width", options.model_options.width},
          {"depth", options.model_options.depth},
          {"checkpoint_activations", options.model_options.checkpoint_activations},
          {"weights", options.weights_file},
          {"data", options.data.name},
          {"data_folder", options.data.folder},
          {"data_seed", options.data.seed},
          {"train_size", options.data.train_size},
          {"test_size", options.data.test_size},
          {"augment", options.data.augment ? nlohmann::json(*options.data.augment) : nlohmann::json()},
          {"tokens", options.data.tokens},
          {"vocabulary", options.data.vocabulary},
          {"data_phrases", options.data.phrases},
          {"epochs", options.epochs},
          {"steps", options.steps},
          {"batch", options.batch},
          {"accumulate", options.accumulate},
          {"optimizer", optimizer.name},
          {"momentum", optimizer.momentum},
          {"nesterov", optimizer.nesterov},
          {"beta1", optimizer.beta1},
          {"beta2", optimizer.beta2},
          {"epsilon", optimizer.epsilon},
          {"weight_decay", optimizer.weight_decay},
          {"clip_norm", options.engine.clip_norm},
          {"lr", base_learning_rate(options)},
          {"scale_lr", options.scale_lr},
          {"schedule", options.schedule.name},
          {"warmup_steps", options.schedule.warmup_steps},
          {"step_epochs", options.schedule.step_epochs},
          {"gamma", options.schedule.gamma},
          {"seed", options.seed},
          {"strategy", options.engine.strategy},
          {"bucket_bytes", options.engine.strategy_options.bucket_bytes},
          {"first_bucket_bytes", options.engine.strategy_options.first_bucket_bytes},
          {"fusion_bytes", options.engine.strategy_options.fusion_bytes},
          {"fusion_cycle_s", options.engine.strategy_options.fusion_cycle_s},
          {"partition_bytes", options.engine.strategy_options.partition_bytes},
          {"credit_bytes", options.engine.strategy_options.credit_bytes},
          {"servers", options.engine.strategy_options.servers},
          {"ranks_per_node", options.ranks_per_node},
          {"wire", options.engine.wire},
          {"topk_ratio", options.engine.topk_ratio},
          {"transport", options.transport},
          {"by_node", options.by_node},
          {"link_startup_us", options.link_startup_us},
          {"link_gbps", options.link_gbps},
          {"device", options.device},
          {"precision", options.precision},
          {"deterministic", options.deterministic},
          {"threads", options.threads},
          {"workers", options.workers},
          {"eval_every", options.eval_every},
          {"eval_batch", options.eval_batch}};
}

}  // namespace tutti
