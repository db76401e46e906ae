#include "options/option_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/names.h"
#include "plan/wire_format.h"

namespace tutti {
namespace {

/// Rows one after the other, each in the group of the one before unless it begins another.
class Rows {
 public:
  void begin(const std::string& group) { group_ = group; }

  /// Recorded under its own name, with underscores.
  TrainOption& add(const std::string& name, TrainOption::Field field, const std::string& help) {
    std::string key = name;
    std::replace(key.begin(), key.end(), '-', '_');
    rows_.push_back({name, key, group_, help, field});
    return rows_.back();
  }

  void add_all(const std::vector<TrainOption>& others) { rows_.insert(rows_.end(), others.begin(), others.end()); }

  std::vector<TrainOption> take() { return std::move(rows_); }

 private:
  std::string group_;
  std::vector<TrainOption> rows_;
};

/// "buckets, dear, zero1": the names in a table that read an option.
template <typename Table, typename Reads>
std::string readers(const Table& table, Reads reads) {
  std::vector<std::string> names;
  for (const auto& one : table)
    if (reads(one)) names.push_back(one.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

void add_optimizer_options(Rows& rows, OptimizerOptions& values) {
  std::string help = "what gradients become:";
  for (const Optimizer& optimizer : optimizers()) help += "\n  " + optimizer.name + ": " + optimizer.summary;
  rows.add("optimizer", &values.name, help).one_of("optimizer", optimizer_names());
  for (const OptimizerOption& option : optimizer_options()) {
    const std::string users =
        readers(optimizers(), [&](const Optimizer& optimizer) { return contains(optimizer.options, option.name); });
    const auto field = std::visit([&](auto member) { return TrainOption::Field(&(values.*member)); }, option.field);
    rows.add(option.name, field, users + ": " + option.help).must_be(option.range);
  }
}

}  // namespace

TrainOption& TrainOption::recorded_as(const std::string& other_key) {
  key = other_key;
  return *this;
}

TrainOption& TrainOption::not_recorded() { return recorded_as(""); }

TrainOption& TrainOption::must_be(const Range& numbers) {
  range = numbers;
  return *this;
}

TrainOption& TrainOption::one_of(const std::string& what, const std::vector<std::string>& known) {
  kind = what;
  names = known;
  return *this;
}

TrainOption& TrainOption::also_called(const std::string& older) {
  older_name = older;
  return *this;
}

TrainOption& TrainOption::not_in_recipes() {
  in_recipes = false;
  return *this;
}

TrainOption& TrainOption::set_by_sweeps() {
  in_sweeps = false;
  return *this;
}

TrainOption& TrainOption::that_changes_speed() {
  changes_speed = true;
  return *this;
}

double base_learning_rate(const TrainOptions& options) {
  return options.learning_rate > 0 ? options.learning_rate : find_optimizer(options.optimizer.name).learning_rate;
}

std::vector<TrainOption> strategy_option_table(TrainOptions& values, const std::string& group, bool offers_auto) {
  Rows rows;
  rows.begin(group);
  std::string help = "how gradients are synchronized:";
  std::vector<std::string> names = strategy_names();
  for (const Strategy& strategy : strategies()) help += "\n  " + strategy.name + ": " + strategy.summary;
  if (offers_auto) {
    help += "\n  auto: measure, simulate all of these, try the best few, keep the fastest";
    names.emplace_back(kAutoStrategy);
  }
  rows.add("strategy", &values.strategy, help).one_of("strategy", names);
  for (const StrategyOption& option : strategy_options()) {
    const std::string users =
        readers(strategies(), [&](const Strategy& strategy) { return strategy.reads(option.name); });
    const auto field = std::visit(
        [&](auto member) -> TrainOption::Field {
          auto* const value = &(values.strategy_options.*member);
          if constexpr (std::is_same_v<decltype(value), int* const>)
            return value;
          else
            return Scaled{value, option.unit};
        },
        option.field);
    TrainOption& row = rows.add(option.name, field, users + ": " + option.help);
    row.recorded_as(option.key).must_be(option.range);
    if (!std::holds_alternative<int*>(field)) row.that_changes_speed();  // reports have a column for servers
  }
  return rows.take();
}

std::vector<TrainOption> train_option_table(TrainOptions& v, const KnownNames& names) {
  Rows rows;
  rows.begin("What to train");
  rows.add("recipe", &v.recipe,
           "options from a file, or from recipes/NAME.yaml; further options override it; list: which there are")
      .not_in_recipes();
  rows.add("plugin", &v.plugin,
           "a shared library with models, data sets or strategies of your own; several between colons; also "
           "$TUTTI_PLUGIN")
      .not_recorded()
      .not_in_recipes()
      .set_by_sweeps();
  rows.add("model", &v.model, "the network to train; unset: what suits the data; `tutti models` lists them")
      .one_of("model", names.models);
  rows.add("width", &v.model_options.width,
           "unet: channels of the first level; transformer, bert: features of a token; mlp: of a layer; unset: the "
           "model's own")
      .that_changes_speed();
  rows.add("depth", &v.model_options.depth,
           "unet: levels; transformer, bert: layers; mlp: hidden layers; unset: the model's own")
      .that_changes_speed();
  rows.add(
      "weights", &v.weights_file,
      "start from these: a run, or a .safetensors file of Tutti's, torchvision's or Hugging Face's; what has no place "
      "there, a new head, begins at random");
  rows.add("strict-weights", &v.strict_weights, "refuse --weights that do not hold every tensor of the model");
  rows.add("freeze", &v.freeze,
           "leave these parameters as they are: names or beginnings of names, with * ? [], between commas: "
           "'conv1,bn1,layer[12]'")
      .that_changes_speed();
  rows.add("data", &v.data.name, "the samples: digits (drawn by Tutti itself), mnist, …; `tutti data` lists them")
      .one_of("data set", names.data_sets);
  rows.add("data-path", &v.data.folder,
           "the folder of the files, or the file; else $TUTTI_DATA/NAME, data/NAME, ../shared/data/NAME")
      .recorded_as("data_folder")
      .also_called("data-folder");
  rows.add("", &v.data.seed, "what generated data is drawn from").recorded_as("data_seed");
  rows.add("train-size", &v.data.train_size, "samples to draw, for generated data; 0: its default");
  rows.add("test-size", &v.data.test_size, "test samples to draw; 0: its default");
  rows.add("augment", &v.data.augment, "vary training images from epoch to epoch; unset: what suits the data");
  rows.add("tokens", &v.data.tokens, "text: tokens per sample; 0: 64").that_changes_speed();
  rows.add("vocabulary", &v.data.vocabulary, "text: file of WordPiece tokens, one a line");
  rows.add("data-phrases", &v.data.phrases, "sst5: train on every phrase, not only on whole sentences");
  rows.add("val-fraction", &v.data.val_fraction,
           "own files that are not divided already: share of them that is the test; 0: a fifth")
      .must_be({0, 1, /*without_least=*/true, /*without_most=*/true});
  rows.add("image-size", &v.data.image_size,
           "image-…: side of the square that the model sees; 0: 224. folder-segmentation: 0: as they are, or "
           "256 where they differ")
      .must_be(at_least(0))
      .that_changes_speed();
  rows.add("crop-scale", &v.data.crop_scale,
           "image-…: least share of a training picture's area that is shown; 1: all that a rectangle from 3:4 to 4:3 "
           "can")
      .must_be({0, 1, /*without_least=*/true});
  rows.add("no-flip", Negated{&v.data.flip}, "image-…: do not mirror half of the training pictures")
      .recorded_as("flip");
  rows.add("image-mean", &v.data.image_mean, "image-…: taken off red, green and blue, which are 0 to 1");
  rows.add("image-std", &v.data.image_std, "image-…: what they are divided by");
  rows.add("cache-mb", Scaled{&v.data.cache_bytes, 1 << 20},
           "image-…: memory of each rank for decoded pictures, shrunk to 8/7 of --image-size; 0: decode anew, from "
           "full size, in each epoch")
      .recorded_as("cache_bytes")
      .must_be(at_least(0))
      .that_changes_speed();
  rows.add("skip-bad-samples", &v.data.skip_bad_samples,
           "image-…: replace pictures that cannot be read, and count them, instead of ending the run");
  rows.add("label", &v.data.label, "csv, text-csv: the column of the class; unset: the last");
  rows.add("text", &v.data.text, "text-csv: the column of the text; unset: the only other one");
  rows.add("epochs", &v.epochs, "passes over the training data").must_be(at_least(1));
  rows.add("steps", &v.steps, "stop after so many steps in all, instead of --epochs").must_be(at_least(0));
  rows.add("batch", &v.batch, "samples per rank and micro-batch").must_be(at_least(1));
  rows.add("accumulate", &v.accumulate, "micro-batches per step").must_be(at_least(1)).that_changes_speed();
  rows.add("seed", &v.seed, "decides weights, order of samples and dropout");

  rows.begin("Optimizer");
  add_optimizer_options(rows, v.optimizer);
  std::string rates;
  for (const Optimizer& optimizer : optimizers())
    rates += fmt::format("{}{} {:g}", rates.empty() ? "" : ", ", optimizer.name, optimizer.learning_rate);
  rows.add("lr", &v.learning_rate, "learning rate; unset: the optimizer's own (" + rates + ")").must_be(at_least(0));
  rows.add("head-lr", &v.head_learning_rate,
           "learning rate of the model's last layer, where --lr is that of the others; 0: theirs. Warm-up and schedule "
           "change both alike")
      .must_be(at_least(0));
  rows.add("scale-lr", &v.scale_lr, "multiply the learning rate by the number of ranks");
  rows.add("clip-norm", &v.clip_norm, "clip gradients to this global norm; 0: never").must_be(at_least(0));
  rows.add("schedule", &v.schedule.name, "constant, step or cosine").one_of("schedule", names.schedules);
  rows.add("warmup", &v.schedule.warmup_steps, "steps of linear warm-up before the schedule")
      .recorded_as("warmup_steps")
      .must_be(at_least(0));
  rows.add("step-epochs", &v.schedule.step_epochs, "schedule step: epochs between reductions");
  rows.add("gamma", &v.schedule.gamma, "schedule step: factor of each reduction");

  rows.begin("Ranks");
  rows.add("ranks", &v.ranks, "processes that train together; unset: one per core (8 at most), or per GPU")
      .must_be(from_to(1, kMostRanks));
  rows.add("threads", &v.threads, "threads per rank; unset: OMP_NUM_THREADS, or cores / ranks").must_be(at_least(1));
  rows.add_all(strategy_option_table(v, "Ranks", /*offers_auto=*/true));
  rows.add("wire", &v.wire,
           "how gradients travel: fp32; fp16 or bf16 halve the bytes; topk (the largest) or sign (a bit each) "
           "leave most of them for later steps. All but fp32 change the mathematics")
      .one_of("wire format", wire_names());
  rows.add("topk-ratio", &v.topk_ratio, "wire format topk: part of the gradients that travels")
      .must_be({0, 1, /*without_least=*/true});
  rows.add("node-ranks", &v.ranks_per_node,
           "with servers: ranks that add up among themselves before one of them talks to the servers")
      .recorded_as("ranks_per_node")
      .must_be(at_least(1))
      .that_changes_speed();
  rows.add("link-gbps", &v.link_gbps, "pretend that links carry this many Gbit/s, for experiments; 0: as they are")
      .must_be(at_least(0));
  rows.add("link-startup-us", &v.link_startup_us, "pretend that each collective starts up this slowly")
      .must_be(at_least(0));
  rows.add("transport", &v.transport, names.transport_help).one_of("transport", names.transports);
  rows.add("by-node", &v.by_node,
           "mpi: add up inside each node through shared memory, then send from one rank of each");
  rows.add("hosts", &v.hosts,
           "HOST:RANKS,…: start ranks on these machines, by mpirun; Tutti and the data lie at the same places there")
      .not_recorded()
      .set_by_sweeps();
  rows.add("max-restarts", &v.max_restarts, "after a failure go on from the last checkpoint, at most so often")
      .must_be(at_least(0))
      .not_recorded()
      .set_by_sweeps();
  rows.add("comm-timeout", &v.comm_timeout_s,
           "seconds without a sign of life after which a rank that others wait for ends the run; one that is alive but "
           "late may take ten times as long")
      .recorded_as("comm_timeout_s")
      .must_be(above(0));
  rows.add("device", &v.device, "auto, cpu or cuda; ranks share GPUs when there are more of them")
      .one_of("device", {"auto", "cpu", "cuda"});
  rows.add("precision", &v.precision, "fp32; on cuda also tf32 (its matrix products) or bf16")
      .one_of("precision", {"fp32", "tf32", "bf16"});
  rows.add("checkpoint-activations", &v.model_options.checkpoint_activations,
           "less memory, more time: compute activations again in backward (unet, transformer, bert)")
      .that_changes_speed();
  rows.add("deterministic", &v.deterministic,
           "cuda: only kernels that give the same bits every time; a cpu always does")
      .that_changes_speed();
  rows.add("no-graph", Negated{&v.graph},
           "cuda: queue every kernel by itself, instead of recording the step once and repeating it")
      .recorded_as("graph")
      .that_changes_speed();
  rows.add("kernel-search", &v.kernel_search,
           "cuda: so many of cuDNN's kernels are timed for each convolution in the first step, which takes seconds; 0: "
           "its "
           "own choice")
      .must_be(at_least(0))
      .that_changes_speed();
  rows.add("workers", &v.workers, "loader threads per rank; 0: load in the training thread").must_be(at_least(0));

  rows.begin("Results");
  rows.add("name", &v.name, "of the run; unset: time, model and data").not_recorded().set_by_sweeps();
  rows.add("runs", &v.runs_folder, "folder that holds the runs").not_recorded().not_in_recipes().set_by_sweeps();
  rows.add("quiet", &v.quiet, "say only what the run came to, and problems").not_recorded();
  rows.add("verbose", &v.verbose, "say what every --log-every steps and each rank did, too").not_recorded();
  rows.add("summary", &v.summary_file, "write a summary to this file, one JSON object")
      .not_recorded()
      .not_in_recipes()
      .set_by_sweeps();
  rows.add("trace", &v.trace_file,
           "write what every rank does in a few steps to this file, for Perfetto or chrome://tracing")
      .not_recorded()
      .not_in_recipes()
      .set_by_sweeps();
  rows.add("trace-steps", &v.trace_steps, "how many steps, from shortly after the plan is made").must_be(at_least(0));
  rows.add("tensorboard", &v.tensorboard, "write event files for TensorBoard, into the run's folder");
  rows.add("log-every", &v.log_every, "steps between records of loss and throughput; --verbose prints them")
      .must_be(at_least(1));
  rows.add("eval-every", &v.eval_every, "epochs between tests").must_be(at_least(1));
  rows.add("eval-batch", &v.eval_batch, "samples per rank and test batch").must_be(at_least(1));
  rows.add("keep-best", &v.keep_best,
           "a metric of the test, as loss, accuracy or dice: keep the weights that were best by it in runs/NAME/best");
  rows.add(
          "patience", &v.patience,
          "end the run after so many tests without a better one, by the metric of --keep-best, else the model's first; "
          "0: never")
      .must_be(at_least(0));
  rows.add("no-eval", Negated{&v.evaluate}, "do not test").recorded_as("evaluate");
  rows.add("checkpoint-steps", &v.checkpoint_steps, "save a checkpoint every so many steps").must_be(at_least(0));
  rows.add("checkpoint-minutes", &v.checkpoint_minutes, "save a checkpoint every so many minutes").must_be(at_least(0));
  rows.add("keep-checkpoints", &v.keep_checkpoints, "older ones are removed").must_be(at_least(1));
  rows.add("resume", &v.resume,
           "continue a run, with its options unless others are given: its name or folder, or a checkpoint's folder")
      .not_recorded()
      .not_in_recipes()
      .set_by_sweeps();
  rows.add("auto-resume", &v.auto_resume,
           "go on with the run --name if it has a checkpoint, else start it: for jobs that are started again")
      .not_recorded()
      .set_by_sweeps();
  return rows.take();
}

}  // namespace tutti
