#include "train/rank_trainer.h"

#include <ATen/Context.h>
#include <c10/core/DeviceGuard.h>
#include <torch/cuda.h>
#include <torch/utils.h>

#include <cmath>
#include <ctime>
#include <limits>
#include <numeric>

#include "base/files.h"
#include "base/torch_compat.h"
#include "comm/exchange.h"
#include "train/node_report.h"
#include "train/rank_setup.h"
#include "train/stop_signal.h"
#include "tutti/error.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

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

}  // namespace

void RankTrainer::open_run_folder() {
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

void RankTrainer::set_up() {
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

bool RankTrainer::run() {
  together(comm_, [this] { set_up(); });
  c10::OptionalDeviceGuard device_guard;
  if (device_.is_cuda()) device_guard.reset_device(device_);
  EngineOptions engine_options = tutti::engine_options(options_);
  engine_options.servers = servers_;
  engine_options.auto_options.steps = (total_steps_ - first_step_) / 2;  // half of the run is to be the best plan's
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
                            options_.optimizer.name, device_.str(), options_.threads, options_.threads == 1 ? "" : "s",
                            options_.strategy, comm_.name(), total_steps_, run_folder_.string()));
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

double RankTrainer::learning_rate() const {
  const double base = base_learning_rate(options_) * (options_.scale_lr ? comm_.size() : 1);
  return base * schedule_factor(options_.schedule, progress_.step, total_steps_, steps_per_epoch_);
}

void RankTrainer::train_epoch() {
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
    if (!is_steady_ && progress_.step - first_step_ >= warm_up_steps_ && decisions_ > 0) {
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

void RankTrainer::train_step(const std::vector<int64_t>& micro_sizes, int64_t global_size, Loader& loader) {
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

void RankTrainer::log_step(int64_t step_in_epoch, int64_t steps_in_epoch) {
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

void RankTrainer::save_if_due() {
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
  TrainProgress progress = progress_;
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

void RankTrainer::test() {
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

}  // namespace tutti
