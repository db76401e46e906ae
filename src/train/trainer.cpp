#include "train/trainer.h"

#include <ATen/Context.h>
#include <c10/core/DeviceGuard.h>
#include <torch/cuda.h>
#include <torch/utils.h>
#include <torch/version.h>

#include <cmath>
#include <ctime>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/clock.h"
#include "base/error.h"
#include "base/files.h"
#include "base/torch_compat.h"
#include "base/trace.h"
#include "comm/exchange.h"
#include "data/loader.h"
#include "data/sampler.h"
#include "model/model.h"
#include "probe/check_report.h"
#include "probe/clocks.h"
#include "report/chrome_trace.h"
#include "report/step_breakdown.h"
#include "train/checkpoint.h"
#include "train/console.h"
#include "train/evaluation.h"
#include "train/node_report.h"
#include "train/rank_setup.h"
#include "train/rank_times.h"
#include "train/records.h"
#include "train/run_report.h"
#include "train/search_report.h"
#include "train/stop_signal.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Left out of the steady throughput: the first steps build kernels, warm caches and measure the profile.
constexpr int64_t kWarmUpSteps = 10;
// Steps under the strategy's plan before they are traced: the first touches new memory.
constexpr int64_t kStepsBeforeTrace = 2;

// How often ranks ask rank 0 whether the time for a checkpoint has come: the question interrupts transfers that cross
// steps.
constexpr int64_t kClockSteps = 10;

/// All randomness of a step comes from here, so a resumed run continues with the same numbers.
uint64_t random_seed(uint64_t seed, int64_t step, int rank) {
  uint64_t x =
      seed * 0x9e3779b97f4a7c15 + static_cast<uint64_t>(step) * 0xbf58476d1ce4e5b9 + static_cast<uint64_t>(rank);
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

/// One rank's training run.
class Trainer {
 public:
  Trainer(const TrainOptions& options, const LaunchEnv& env, Communicator& comm)
      : options_(options), env_(env), comm_(comm), console_(comm.rank() == 0), is_first_(comm.rank() == 0) {}

  /// False when a signal stopped it after a checkpoint.
  bool run();

 private:
  void set_up();
  void open_run_folder();
  void train_epoch();
  void train_step(const std::vector<int64_t>& micro_sizes, int64_t global_size, Loader& loader);
  void log_step(int64_t step_in_epoch, int64_t steps_in_epoch);
  void save_if_due();
  void test();
  void report_epoch(const RankTimes& times, double loss, int64_t samples);
  void finish();
  double learning_rate() const;
  bool saves_checkpoints() const { return options_.checkpoint_steps > 0 || options_.checkpoint_minutes > 0; }
  std::vector<json> gather(const json& mine) const;
  void follow_plan();
  void record_plan();
  TraceBuffer* recording() const { return trace_ ? trace_->compute() : nullptr; }
  void record_trace();

  const TrainOptions& options_;
  const LaunchEnv& env_;
  Communicator& comm_;
  Console console_;
  const bool is_first_;
  std::vector<Node> nodes_;

  torch::Device device_ = torch::kCPU;
  BatchPlace place_;
  TrainTest data_;
  std::shared_ptr<Model> model_;
  std::unique_ptr<Trace> trace_;  // null: nothing is recorded
  bool is_trace_written_ = false;
  int decisions_ = 0;  // of the engine on its plan, seen so far
  bool is_searched_ = false;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Sampler> sampler_;
  std::unique_ptr<Checkpoint> resumed_;  // while setting up
  json config_;

  fs::path run_folder_;
  RecordFile records_;
  Progress progress_;
  int64_t total_steps_ = 0;
  int64_t steps_per_epoch_ = 0;
  int64_t first_step_ = 0;

  // Since the last log line, and since the run began.
  Clock::time_point log_time_{}, checkpoint_time_ = Clock::now();
  int64_t log_samples_ = 0;
  torch::Tensor loss_sum_;  // on the device: reading it waits, so only log lines do
  RankTimes epoch_times_, total_times_;
  int64_t total_samples_ = 0;
  int64_t steady_samples_ = 0;
  double steady_s_ = 0;
  Clock::time_point steady_start_{};
  bool is_steady_ = false;
  int64_t warm_up_steps_ = kWarmUpSteps;
  std::vector<double> step_s_;  // of the epoch
  EvalCounts last_test_;
  bool tested_ = false;
  bool is_stopped_ = false;  // by a signal
};

void Trainer::open_run_folder() {
  std::string name = options_.name;
  if (resumed_ && name.empty() && resumed_->folder().parent_path().filename() == "checkpoints") {
    run_folder_ = resumed_->folder().parent_path().parent_path();
  } else {
    if (name.empty()) {
      const std::time_t now = std::time(nullptr);
      std::tm local{};
      ::localtime_r(&now, &local);
      char stamp[32];
      std::strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", &local);
      name = fmt::format("{}-{}-{}", stamp, options_.model, options_.data.name);
    }
    run_folder_ = fs::path(options_.runs_folder) / name;
    if (!options_.name.empty() && !resumed_ && !options_.auto_resume && fs::exists(run_folder_ / "records.jsonl"))
      throw UsageError("the run {} exists already: choose another --name, or continue it with --resume {}",
                       run_folder_.string(), options_.name);
    for (int again = 2; options_.name.empty() && fs::exists(run_folder_); ++again)
      run_folder_ = fs::path(options_.runs_folder) / fmt::format("{}-{}", name, again);
  }
  make_folders(run_folder_);
  records_ = RecordFile(run_folder_ / "records.jsonl");
}

void Trainer::set_up() {
  device_ = choose_device(options_.device, env_.local_rank);
  if (options_.precision != "fp32" && !device_.is_cuda())
    throw UsageError("--precision {} needs --device cuda: on a CPU train in fp32", options_.precision);
  allow_tf32(options_.precision != "fp32");
  if (options_.deterministic) {
    at::globalContext().setDeterministicCuDNN(true);
    at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/false);
  } else {
    at::globalContext().setBenchmarkCuDNN(true);  // shapes hardly ever change: the search for a kernel pays
  }
  DataOptions data = options_.data;
  if (!data.traits) data.traits = natural_data(options_.model);  // what `synthetic` imitates
  data_ = open_data(data);
  const fs::path named_run = fs::path(options_.runs_folder) / options_.name;
  if (options_.auto_resume && has_checkpoint(named_run))
    resumed_ = std::make_unique<Checkpoint>(find_checkpoint(named_run.string(), {}));
  else if (!options_.resume.empty())
    resumed_ = std::make_unique<Checkpoint>(find_checkpoint(options_.resume, options_.runs_folder));

  torch::manual_seed(options_.seed);
  ModelOptions model_options = options_.model_options;
  model_options.data = data_.train->traits();
  model_options.data_name = options_.data.name;
  model_ = make_model(options_.model, model_options);
  if (resumed_) {
    resumed_->load_weights(*model_);
    progress_ = resumed_->progress();
  } else if (!options_.weights_file.empty()) {
    const auto unused = load_weights(options_.weights_file, *model_);
    if (!unused.empty())
      console_.line(fmt::format("note: {} tensors of {} have no place in {}, '{}' among them", unused.size(),
                                options_.weights_file, options_.model, unused[0]));
  }
  model_->to(device_);
  // Without tensor cores, that is in full float32, channels-last convolutions are slower.
  place_ = {device_, device_.is_cuda() && options_.precision != "fp32" && model_->prefers_channels_last()};
  if (place_.channels_last) use_channels_last(*model_);
  model_->train();
  last_test_ = nothing_counted(model_options.data.kind);

  sampler_ =
      std::make_unique<Sampler>(data_.train->size(), options_.seed, options_.batch * options_.accumulate, comm_.size());
  sampler_->begin_epoch(0);
  steps_per_epoch_ = sampler_->steps();
  total_steps_ = options_.steps > 0 ? options_.steps : options_.epochs * steps_per_epoch_;
  first_step_ = progress_.step;

  config_ = describe_options(options_);
  config_["ranks"] = comm_.size();
  const fs::path trace_folder = fs::path(options_.trace_file).parent_path();
  if (!trace_folder.empty() && !fs::is_directory(trace_folder))
    throw UsageError("--trace {}: there is no folder {}", options_.trace_file, trace_folder.string());
  config_["device_used"] = device_.str();
  if (is_first_) open_run_folder();
}

bool Trainer::run() {
  together(comm_, [this] { set_up(); });
  c10::OptionalDeviceGuard device_guard;
  if (device_.is_cuda()) device_guard.reset_device(device_);
  EngineOptions engine_options = options_.engine;
  if (options_.trace_steps > 0) {
    // From shortly after the plan is decided on, which follow_plan() sees.
    trace_ = std::make_unique<Trace>(TraceWindow{std::numeric_limits<int64_t>::max() / 2, options_.trace_steps});
    engine_options.trace = trace_.get();
  }
  engine_ = std::make_unique<Engine>(*model_, comm_, engine_options);
  together(comm_, [this] {
    if (resumed_) resumed_->restore(*engine_);
  });

  const int64_t parameters =
      std::accumulate(engine_->space().parameters().begin(), engine_->space().parameters().end(), int64_t{0},
                      [](int64_t sum, const FlatParameter& p) { return sum + p.tensor.numel(); });
  nodes_ = find_nodes(comm_);
  records_.add("run", {{"config", config_},
                       {"nodes", describe_nodes(nodes_)},
                       {"environment", describe_environment()},
                       {"launcher", env_.launcher},
                       {"resumed_at_step", first_step_}});
  console_.line(fmt::format("Training {} ({:.2f} M parameters) on {} ({} training samples, {} test samples)",
                            options_.model, static_cast<double>(parameters) * 1e-6, options_.data.name,
                            data_.train->size(), data_.test->size()));
  console_.line(fmt::format("{} rank{} × batch {}{}, {} on {}, {} thread{} each; strategy {} over {}; {} steps; run {}",
                            comm_.size(), comm_.size() == 1 ? "" : "s", options_.batch,
                            options_.accumulate > 1 ? fmt::format(" × {}", options_.accumulate) : "",
                            options_.engine.optimizer.name, device_.str(), options_.threads,
                            options_.threads == 1 ? "" : "s", options_.engine.strategy, comm_.name(), total_steps_,
                            run_folder_.string()));
  if (nodes_.size() > 1) console_.line(list_nodes(nodes_));
  if (resumed_) {
    console_.line(fmt::format("Resumed at step {} from {}", first_step_, resumed_->folder().string()));
    for (const auto& [key, value] : config_.items())
      if (resumed_->options().contains(key) && resumed_->options()[key] != value && key != "epochs" && key != "steps")
        console_.line(fmt::format("note: {} was {} when the checkpoint was made and is {} now", key,
                                  resumed_->options()[key].dump(), value.dump()));
    resumed_.reset();
  }

  try {
    while (progress_.step < total_steps_ && !is_stopped_) train_epoch();
    if (is_stopped_) return false;
    finish();
    return true;
  } catch (const CommFailed& failure) {
    const std::string me = fmt::format("rank {}/{}", comm_.rank(), comm_.size());
    if (std::string(failure.what()).rfind(me, 0) == 0) throw;  // a transfer's own message says more
    throw CommFailed("{}, after step {}: {}", me, progress_.step, failure.what());
  }
}

double Trainer::learning_rate() const {
  const double base = base_learning_rate(options_) * (options_.scale_lr ? comm_.size() : 1);
  return base * schedule_factor(options_.schedule, progress_.step, total_steps_, steps_per_epoch_);
}

void Trainer::train_epoch() {
  sampler_->begin_epoch(progress_.epoch, progress_.samples_in_epoch);
  const int64_t steps = std::min(sampler_->steps(), total_steps_ - progress_.step);
  std::vector<std::vector<int64_t>> batches;  // this rank's micro-batches, one after the other
  std::vector<std::vector<int64_t>> micro_sizes(static_cast<std::size_t>(steps));  // by step
  for (int64_t step = 0; step < steps; ++step) {
    const std::vector<int64_t> mine = sampler_->indices(step, comm_.rank());
    for (std::size_t begin = 0; begin < mine.size(); begin += static_cast<std::size_t>(options_.batch)) {
      const std::size_t end = std::min(mine.size(), begin + static_cast<std::size_t>(options_.batch));
      batches.emplace_back(mine.begin() + static_cast<std::ptrdiff_t>(begin),
                           mine.begin() + static_cast<std::ptrdiff_t>(end));
      micro_sizes[static_cast<std::size_t>(step)].push_back(static_cast<int64_t>(end - begin));
    }
  }

  model_->train();
  epoch_times_ = {};
  step_s_.clear();
  loss_sum_ = torch::zeros({}, device_);
  int64_t epoch_samples = 0, my_samples = 0;
  double epoch_loss = 0;
  Loader loader(data_.train, std::move(batches),
                {options_.workers, options_.prefetch, device_.is_cuda(), progress_.epoch});
  const auto start = Clock::now();
  auto step_start = start;
  double set_aside_s = 0;  // spent on checkpoints, not on training
  log_time_ = start;
  log_samples_ = 0;
  if (is_steady_) steady_start_ = start;
  for (int64_t step = 0; step < steps; ++step) {
    const int64_t global_size = sampler_->global_size(step);
    const auto& sizes = micro_sizes[static_cast<std::size_t>(step)];
    train_step(sizes, global_size, loader);
    my_samples += std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
    epoch_samples += global_size;
    log_samples_ += global_size;
    ++progress_.step;
    progress_.samples_in_epoch += global_size;
    step_s_.push_back(seconds_since(step_start));
    step_start = Clock::now();
    if (is_steady_) steady_samples_ += global_size;
    follow_plan();
    if (!is_steady_ && progress_.step - first_step_ >= kWarmUpSteps && decisions_ > 0) {
      if (device_.is_cuda()) torch::cuda::synchronize();
      is_steady_ = true;
      warm_up_steps_ = progress_.step - first_step_;
      steady_start_ = Clock::now();
    }
    log_step(step + 1, steps);
    const auto before_saving = Clock::now();
    save_if_due();
    set_aside_s += seconds_since(before_saving);
    if (is_stopped_) return;
  }
  epoch_loss = loss_sum_.item<double>();  // waits for the device
  epoch_times_.train_s = seconds_since(start) - set_aside_s;
  if (is_steady_) steady_s_ += seconds_since(steady_start_) - set_aside_s;
  epoch_times_.data_wait_s = loader.waited_s();
  total_samples_ += epoch_samples;

  const bool epoch_over = progress_.samples_in_epoch >= data_.train->size();
  if (epoch_over) {
    ++progress_.epoch;
    progress_.samples_in_epoch = 0;
  }
  const bool last = progress_.step >= total_steps_;
  tested_ = false;
  if (options_.evaluate && (last || (epoch_over && progress_.epoch % options_.eval_every == 0))) test();
  report_epoch(epoch_times_, epoch_loss, my_samples);
  if (trace_ && trace_->is_over()) record_trace();
  total_times_.add(epoch_times_);
}

void Trainer::train_step(const std::vector<int64_t>& micro_sizes, int64_t global_size, Loader& loader) {
  torch::manual_seed(random_seed(options_.seed, progress_.step, comm_.rank()));
  const double rate = learning_rate();
  engine_->begin_step();
  for (std::size_t i = 0; i < micro_sizes.size(); ++i) {
    const Batch batch = [&] {
      const TraceSpan span(recording(), TraceKind::data_wait);
      return to_device(loader.next(), place_);
    }();
    torch::Tensor loss;
    {
      const Bf16Autocast autocast(options_.precision == "bf16");
      loss = model_->loss(batch);
    }
    engine_->backward(loss, static_cast<double>(batch.size) / static_cast<double>(global_size),
                      i + 1 == micro_sizes.size());
    loss_sum_.add_(loss.detach(), static_cast<double>(batch.size));
  }
  const StepTimes times = engine_->finish_step(rate);
  epoch_times_.comm_s += times.comm_busy_s;
  epoch_times_.comm_exposed_s += times.comm_exposed_s;
}

void Trainer::log_step(int64_t step_in_epoch, int64_t steps_in_epoch) {
  const double seconds = seconds_since(log_time_);
  const double rate = static_cast<double>(log_samples_) / std::max(seconds, 1e-9);
  if (progress_.step % options_.log_every == 0) {
    console_.line(fmt::format("step {}: {:.1f} data/s", progress_.step, rate));
    records_.add("progress",
                 {{"step", progress_.step}, {"epoch", progress_.epoch}, {"data_per_s", rate}, {"lr", learning_rate()}});
    log_time_ = Clock::now();
    log_samples_ = 0;
    return;
  }
  const double left_s = static_cast<double>(steps_in_epoch - step_in_epoch) * seconds /
                        static_cast<double>(std::max<int64_t>(1, progress_.step % options_.log_every));
  console_.progress(fmt::format("epoch {}  step {}/{}  {:.0f} data/s  {} left", progress_.epoch + 1, step_in_epoch,
                                steps_in_epoch, rate, readable_duration(left_s)));
}

void Trainer::follow_plan() {
  const StrategySearch* const search = engine_->search();
  if (decisions_ > 0 && search == nullptr && is_searched_) {
    console_.line(fmt::format(
        "step {}: steps take much longer or shorter than when the strategy was chosen: looking again", progress_.step));
    is_searched_ = false;
  }
  if (engine_->decisions() == decisions_) return;
  if (trace_ && decisions_ == 0) trace_->start_at(progress_.step + kStepsBeforeTrace);
  decisions_ = engine_->decisions();
  is_searched_ = search != nullptr;
  record_plan();
}

void Trainer::record_plan() {
  if (!engine_->profile()) return;
  json record = {{"profile", *engine_->profile()}, {"plan", engine_->plan()}, {"step", progress_.step}};
  if (engine_->links()) record["links"] = *engine_->links();
  if (const StrategySearch* const search = engine_->search()) {
    record["search"] = describe_search(*search);
    for (const std::string& line : search_lines(*search)) console_.line(line);
  }
  if (!engine_->remark().empty()) {
    console_.line("note: " + engine_->remark());
    record["remark"] = engine_->remark();
  }
  records_.add("plan", std::move(record));
}

void Trainer::record_trace() {
  if (is_trace_written_) return;
  is_trace_written_ = true;
  engine_->settle();  // the communication thread is idle from here on
  RankTrace mine;
  mine.compute = trace_->compute_events();
  mine.communication = trace_->communication_events();
  if (nodes_.size() > 1) {
    // Steady clocks of machines count from different times. An offset that may as well be none is none.
    const ClockOffset offset = measure_clock_offsets(comm_)[static_cast<std::size_t>(comm_.rank())];
    if (std::abs(offset.steady_s) > offset.uncertainty_s) mine.clock_offset_ns = -std::llround(offset.steady_s * 1e9);
  }
  std::vector<RankTrace> ranks;
  for (const json& rank : gather(mine)) ranks.push_back(rank.get<RankTrace>());
  if (!is_first_) return;
  const StepBreakdown breakdown = break_down(ranks, engine_->plan(), engine_->links());
  if (breakdown.steps > 0) records_.add("explain", breakdown);
  if (options_.trace_file.empty()) return;
  if (breakdown.steps == 0) {
    console_.line(fmt::format(
        "note: the run ended before the plan had run for {} steps, after which a trace begins: {} is not written",
        kStepsBeforeTrace, options_.trace_file));
    return;
  }
  write_file_atomically(options_.trace_file, chrome_trace(ranks, engine_->plan()));
  console_.line(fmt::format("Trace of steps {} to {}: {}", breakdown.first_step + 1,
                            breakdown.first_step + breakdown.steps, options_.trace_file));
}

void Trainer::save_if_due() {
  bool due = options_.checkpoint_steps > 0 && progress_.step % options_.checkpoint_steps == 0;
  if (saves_checkpoints() && progress_.step % kClockSteps == 0) {
    // Rank 0's clock decides for all, and a signal to any rank.
    engine_->drain();
    const double minutes = seconds_since(checkpoint_time_) / 60;
    int64_t reasons[2] = {is_first_ && options_.checkpoint_minutes > 0 && minutes > options_.checkpoint_minutes ? 1 : 0,
                          stop_signal() != 0 ? 1 : 0};
    comm_.all_reduce_sum({reasons, 2, DataType::i64})->wait();
    is_stopped_ = reasons[1] != 0;
    due = due || reasons[0] != 0 || is_stopped_;
  }
  if (!due) return;
  const TraceSpan span(recording(), TraceKind::checkpoint);
  engine_->settle();
  checkpoint_time_ = Clock::now();
  const auto optimizer_state = engine_->optimizer_state();  // all ranks have a part in it
  if (!is_first_) return;
  Progress progress = progress_;
  if (progress.samples_in_epoch >= data_.train->size()) {
    ++progress.epoch;
    progress.samples_in_epoch = 0;
  }
  console_.progress(fmt::format("saving a checkpoint at step {}", progress.step));
  const fs::path folder = save_checkpoint(run_folder_ / "checkpoints", *model_, optimizer_state,
                                          engine_->first_updates(), progress, config_, options_.keep_checkpoints);
  records_.add("checkpoint",
               {{"step", progress.step}, {"folder", folder.string()}, {"seconds", seconds_since(checkpoint_time_)}});
  if (is_stopped_)
    console_.line(fmt::format("Stopped by a signal after saving step {}; to go on: tutti train --resume {}",
                              progress.step, run_folder_.string()));
}

void Trainer::test() {
  const TraceSpan span(recording(), TraceKind::evaluation);
  engine_->settle();
  const auto start = Clock::now();
  last_test_ = evaluate(
      *model_, data_.test, comm_,
      {options_.eval_batch, options_.workers, options_.prefetch, place_, options_.precision == "bf16"},
      [this](int64_t done, int64_t all) { console_.progress(fmt::format("testing: {}/{} batches", done, all)); });
  epoch_times_.test_s = seconds_since(start);
  tested_ = true;
}

std::vector<json> Trainer::gather(const json& mine) const {
  engine_->drain();
  std::vector<json> all;
  for (const std::string& text : gather_texts(comm_, mine.dump())) all.push_back(json::parse(text));
  return all;
}

void Trainer::report_epoch(const RankTimes& times, double loss, int64_t samples) {
  json mine = times.describe();
  mine["samples"] = samples;
  mine["loss_sum"] = loss;
  EpochResult result;
  result.epoch = progress_.samples_in_epoch == 0 ? progress_.epoch : progress_.epoch + 1;
  result.step = progress_.step;
  result.ranks = gather(mine);
  result.test = tested_ ? &last_test_ : nullptr;
  result.nodes = nodes_;
  for (const std::string& line : epoch_lines(result)) console_.line(line);
  json record = epoch_record(result);
  record["step_s"] = step_s_;
  records_.add("epoch", std::move(record));
}

void Trainer::finish() {
  engine_->settle();
  if (trace_) record_trace();
  if (options_.evaluate && !tested_) {  // resumed at the very end
    epoch_times_ = {};
    test();
    total_times_.add(epoch_times_);
  }
  json mine = total_times_.describe();
  mine["weights_sha256"] = weights_sha256(*model_);
  mine["peak_rss_bytes"] = peak_rss_bytes();
  mine["optimizer_state_bytes"] = engine_->optimizer_state_bytes();
  mine["steady_s"] = steady_s_;
  const std::vector<json> ranks = gather(mine);
  for (std::size_t rank = 1; rank < ranks.size(); ++rank)
    if (ranks[rank].at("weights_sha256") != ranks[0].at("weights_sha256"))
      throw Error("rank {} ended with other weights than rank 0: do not use them, and please report this with {}", rank,
                  records_.path().string());
  if (!is_first_) return;

  json summary = summary_of_ranks(ranks, total_samples_, steady_samples_);
  summary.update({{"model", options_.model},
                  {"data", options_.data.name},
                  {"ranks", comm_.size()},
                  {"strategy", options_.engine.strategy},
                  {"strategy_used", engine_->plan().strategy},
                  {"transport", comm_.name()},
                  {"nodes", describe_nodes(nodes_)},
                  {"device", device_.str()},
                  {"precision", options_.precision},
                  {"steps", progress_.step},
                  {"epochs", progress_.epoch},
                  {"warm_up_steps", warm_up_steps_},
                  {"run_folder", run_folder_.string()},
                  {"config", config_},
                  {"environment", describe_environment()}});
  const json results = test_results(last_test_);
  for (const auto& [name, value] : results.items()) summary[name] = tested_ ? value : json();
  const fs::path weights = run_folder_ / "model.safetensors";
  save_weights(weights, *model_);
  records_.add("summary", summary);
  if (!options_.summary_file.empty()) write_file_atomically(options_.summary_file, summary.dump(1) + "\n");
  std::string line = fmt::format("Done: {} steps in {:.1f} s of training, {:.1f} data/s", progress_.step - first_step_,
                                 summary.at("train_s").get<double>(), summary.at("samples_per_s").get<double>());
  if (tested_) line += ", " + test_headline(last_test_);
  console_.line(line);
  console_.line(fmt::format("Weights: {}  Records: {}", weights.string(), records_.path().string()));
}

}  // namespace

int train(const TrainOptions& options, const LaunchEnv& env) {
  set_compute_threads(options.threads);
  if (options.checkpoint_steps > 0 || options.checkpoint_minutes > 0) note_stop_signals();
  LaunchEnv ranks = env;
  if (serve_if_server(options, ranks)) return 0;
  const std::unique_ptr<Communicator> comm = connect(options, ranks);
  try {
    // Only there can ranks have come from different files.
    if (comm->name() == std::string("mpi")) {
      TorchFacts torch;
      torch.libtorch = TORCH_VERSION;
      require_same_build(*comm, torch);
    }
    const std::unique_ptr<Servers> servers = connect_servers(options, ranks);
    TrainOptions connected = options;
    if (servers) connected.engine.servers = &servers->push_pull();
    const bool is_done = Trainer(connected, ranks, *comm).run();
    if (servers) servers->stop();
    comm->barrier()->wait();  // nobody leaves while others still need them
    return is_done ? 0 : kExitSaved;
  } catch (const std::exception& error) {
    comm->abort(error.what());
    throw;
  }
}

}  // namespace tutti
