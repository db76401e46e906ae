#include "train/rank_trainer.h"

#include <ATen/Context.h>
#include <c10/core/DeviceGuard.h>
#include <torch/cuda.h>
#include <torch/utils.h>
#include <torch/version.h>

#include <cmath>
#include <ctime>
#include <limits>
#include <utility>

#include "base/files.h"
#include "base/torch_compat.h"
#include "comm/exchange.h"
#include "record/record_file.h"
#include "runlog/node_report.h"
#include "train/rank_setup.h"
#include "train/schedule.h"
#include "train/stop_signal.h"
#include "tutti/error.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// How often ranks ask rank 0 whether the time for a checkpoint has come: the question interrupts transfers that cross
// steps.
constexpr int64_t kClockSteps = 10;

/// While this is alive, cuDNN's first choice of a kernel is taken. A search takes seconds for a network, and pays only
/// for shapes that come again and again.
class NoKernelSearch {
 public:
  explicit NoKernelSearch(bool on) : on_(on), before_(at::globalContext().benchmarkCuDNN()) {
    if (on_) at::globalContext().setBenchmarkCuDNN(false);
  }
  ~NoKernelSearch() {
    if (on_) at::globalContext().setBenchmarkCuDNN(before_);
  }
  NoKernelSearch(const NoKernelSearch&) = delete;
  NoKernelSearch& operator=(const NoKernelSearch&) = delete;

 private:
  bool on_, before_;
};

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
    if (!options_.name.empty() && !resumed_ && !options_.auto_resume && fs::exists(run_folder_ / kRecordsFile))
      throw UsageError("the run {} exists already: choose another --name, or continue it with --resume {}",
                       run_folder_.string(), options_.name);
    for (int again = 2; options_.name.empty() && fs::exists(run_folder_); ++again)
      run_folder_ = fs::path(options_.runs_folder) / fmt::format("{}-{}", name, again);
  }
  make_folders(run_folder_);
  records_.add_sink(json_lines((run_folder_ / kRecordsFile).string()));
}

void RankTrainer::set_up() {
  device_ = choose_device(options_.device, env_.local_rank);
  stream_ = std::make_unique<ComputeStream>(device_);
  if (options_.precision != "fp32" && !device_.is_cuda())
    throw UsageError("--precision {} needs --device cuda: on a CPU train in fp32", options_.precision);
  allow_tf32(options_.precision != "fp32");
  if (options_.deterministic) {
    // cuBLAS adds in one order only with workspaces of its own; torch insists on it.
    ::setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/0);
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
  keep_data_on_device();
  last_test_ = nothing_counted(model_options.data.kind);

  sampler_ =
      std::make_unique<Sampler>(data_.train->size(), options_.seed, options_.batch * options_.accumulate, comm_.size());
  sampler_->begin_epoch(0);
  steps_per_epoch_ = sampler_->steps();
  total_steps_ = options_.steps > 0 ? options_.steps : options_.epochs * steps_per_epoch_;
  first_step_ = progress_.step;

  config_ = config_record(describe_options(options_), comm_.size(), device_.str());
  const fs::path trace_folder = fs::path(options_.trace_file).parent_path();
  if (!trace_folder.empty() && !fs::is_directory(trace_folder))
    throw UsageError("--trace {}: there is no folder {}", options_.trace_file, trace_folder.string());
  if (is_first_) open_run_folder();
}

bool RankTrainer::run() {
  all_ranks_or_none(comm_, [this] { set_up(); });
  c10::OptionalDeviceGuard device_guard;
  if (device_.is_cuda()) device_guard.reset_device(device_);
  TuneOptions engine_options = tutti::engine_options(options_);
  engine_options.servers = servers_;
  engine_options.auto_options.steps = (total_steps_ - first_step_) / 2;  // half of the run is to be the best plan's
  if (options_.trace_steps > 0) {
    // From shortly after the plan is decided on, which follow_plan() sees.
    trace_ = std::make_unique<Trace>(TraceWindow{std::numeric_limits<int64_t>::max() / 2, options_.trace_steps});
    engine_options.trace = trace_.get();
  }
  engine_ = std::make_unique<TunedEngine>(*model_, comm_, engine_options);
  all_ranks_or_none(comm_, [this] {
    if (resumed_) resumed_->restore(engine_->engine());
  });
  captured_ = std::make_unique<CapturedStep>(engine_->engine(), options_.graph);
  loss_sum_ = torch::zeros({}, device_);

  nodes_ = find_nodes(comm_);
  records_.add(RunRecord{config_, describe_nodes(nodes_), this_environment(TORCH_VERSION), env_.launcher, first_step_});
  console_.line(fmt::format("Training {} ({:.2f} M parameters) on {} ({} training samples, {} test samples)",
                            options_.model, static_cast<double>(engine_->engine().parameter_elements()) * 1e-6,
                            options_.data.name, data_.train->size(), data_.test->size()));
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

void RankTrainer::keep_data_on_device() {
  if (!device_.is_cuda()) return;
  const auto packed = pack_samples(data_.train, kMostResidentBytes, options_.workers);
  if (packed) resident_ = make_resident_data(*packed, place_);
}

bool RankTrainer::is_step_settled() const {
  constexpr int64_t kLongestStart = 60;  // steps
  return !device_.is_cuda() || !options_.graph || captured_->is_recorded() || !captured_->remark().empty() ||
         progress_.step - first_step_ >= kLongestStart;
}

double RankTrainer::learning_rate() const {
  const double base = base_learning_rate(options_) * (options_.scale_lr ? comm_.size() : 1);
  return base * schedule_factor(options_.schedule, progress_.step, total_steps_, steps_per_epoch_);
}

void RankTrainer::train_epoch() {
  sampler_->begin_epoch(progress_.epoch, progress_.samples_in_epoch);
  const int64_t steps = std::min(sampler_->steps(), total_steps_ - progress_.step);
  std::vector<int64_t> order;                 // this rank's samples
  std::vector<std::vector<int64_t>> batches;  // the same as micro-batches, for the loader
  std::vector<int64_t> step_sizes;            // this rank's samples of each step
  for (int64_t step = 0; step < steps; ++step) {
    const std::vector<int64_t> mine = sampler_->indices(step, comm_.rank());
    step_sizes.push_back(static_cast<int64_t>(mine.size()));
    order.insert(order.end(), mine.begin(), mine.end());
    for (std::size_t begin = 0; !resident_ && begin < mine.size(); begin += static_cast<std::size_t>(options_.batch)) {
      const std::size_t end = std::min(mine.size(), begin + static_cast<std::size_t>(options_.batch));
      batches.emplace_back(mine.begin() + static_cast<std::ptrdiff_t>(begin),
                           mine.begin() + static_cast<std::ptrdiff_t>(end));
    }
  }
  if (resident_) resident_->begin_epoch(order);

  model_->train();
  epoch_times_ = {};
  step_s_.clear();
  loss_sum_.zero_();
  int64_t epoch_samples = 0, my_samples = 0;
  double epoch_loss = 0;
  Loader loader(data_.train, std::move(batches),
                {options_.workers, options_.prefetch, device_.is_cuda(), progress_.epoch});
  DeviceFeed feed(loader, place_);
  const auto start = Clock::now();
  auto step_start = start;
  double set_aside_s = 0;  // spent on checkpoints, not on training
  log_time_ = start;
  log_samples_ = log_own_samples_ = 0;
  log_loss_sum_ = 0;
  if (is_steady_) steady_start_ = start;
  for (int64_t step = 0; step < steps; ++step) {
    const int64_t global_size = sampler_->global_size(step);
    const int64_t my_size = step_sizes[static_cast<std::size_t>(step)];
    train_step(my_size, global_size, feed);
    my_samples += my_size;
    epoch_samples += global_size;
    log_samples_ += global_size;
    log_own_samples_ += my_size;
    ++progress_.step;
    progress_.samples_in_epoch += global_size;
    step_s_.push_back(seconds_since(step_start));
    step_start = Clock::now();
    if (is_steady_) steady_samples_ += global_size;
    follow_plan();
    if (!is_steady_ && progress_.step - first_step_ >= warm_up_steps_ && decisions_ > 0 && is_step_settled()) {
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
  report_epoch(epoch_loss, my_samples);
  if (trace_ && trace_->is_over()) record_trace();
  total_times_.add(epoch_times_);
}

void RankTrainer::seed_step() {
  const uint64_t seed = random_seed(options_.seed, progress_.step, comm_.rank());
  if (device_.is_cpu()) {
    torch::manual_seed(seed);
    return;
  }
  // Nothing of a step on a GPU draws on the CPU, whose generator takes longer to seed than some steps to launch.
  at::Generator generator = at::globalContext().defaultGenerator(device_);
  const std::lock_guard<std::mutex> lock(generator.mutex());
  generator.set_current_seed(seed);
}

Batch RankTrainer::next_batch(DeviceFeed& feed) {
  const TraceSpan span(recording(), TraceKind::data_wait);
  return feed.next();
}

void RankTrainer::fill_inputs(DeviceFeed& feed) {
  inputs_.resize(static_cast<std::size_t>(options_.accumulate));
  for (Batch& to : inputs_) {
    const Batch from = next_batch(feed);
    if (to.size == 0) {
      to = from;
      continue;
    }
    for (std::size_t i = 0; i < to.inputs.size(); ++i) to.inputs[i].copy_(from.inputs[i]);
    to.target.copy_(from.target);
  }
}

void RankTrainer::train_step(int64_t samples, int64_t global_size, DeviceFeed& feed) {
  seed_step();
  const double rate = learning_rate();
  // Those of one size on all ranks are recorded on a GPU: from memory that stays the same.
  const bool is_whole =
      device_.is_cuda() && samples == options_.batch * options_.accumulate && global_size == samples * comm_.size();
  const NoKernelSearch guard(!is_whole);
  // An eager step takes its data in its own time, which is measured; the host of a repeated one has nothing else to do.
  bool wants_inputs = is_whole && !resident_;
  const auto fill = [&] {
    if (std::exchange(wants_inputs, false)) fill_inputs(feed);
  };
  if (!captured_->is_next_eager()) fill();
  const auto run_step = [&] {
    engine_->begin_step();
    fill();
    for (int64_t first = 0; first < samples; first += options_.batch) {
      const int64_t size = std::min(options_.batch, samples - first);
      const Batch batch = resident_  ? resident_->gather(first, size)
                          : is_whole ? inputs_[static_cast<std::size_t>(first / options_.batch)]
                                     : next_batch(feed);
      torch::Tensor loss;
      {
        const Bf16Autocast autocast(options_.precision == "bf16");
        loss = model_->loss(batch);
      }
      engine_->backward(loss, static_cast<double>(size) / static_cast<double>(global_size), first + size == samples);
      loss_sum_.add_(loss.detach(), static_cast<double>(size));
    }
    if (resident_) resident_->advance(samples);
    return engine_->finish_step(rate);
  };
  const StepTimes times = is_whole ? captured_->run(rate, run_step) : run_step();
  if (!captured_->is_next_eager()) feed.fetch_ahead();
  epoch_times_.comm_s += times.comm_busy_s;
  epoch_times_.comm_exposed_s += times.comm_exposed_s;
}

void RankTrainer::log_step(int64_t step_in_epoch, int64_t steps_in_epoch) {
  const bool is_logged = progress_.step % options_.log_every == 0;
  if (!is_logged && !console_.is_progress_due()) return;
  if (device_.is_cuda() && is_logged) torch::cuda::synchronize();  // the host may be many steps ahead
  const double seconds = seconds_since(log_time_);
  const double rate = static_cast<double>(log_samples_) / std::max(seconds, 1e-9);
  if (is_logged) {
    if (is_first_) {
      const double loss_sum = loss_sum_.item<double>();
      double loss = (loss_sum - log_loss_sum_) / static_cast<double>(std::max<int64_t>(1, log_own_samples_));
      if (std::isnan(loss)) loss = std::numeric_limits<double>::quiet_NaN();  // without a sign, which means nothing
      log_loss_sum_ = loss_sum;
      console_.line(fmt::format("step {}: {:.1f} data/s, loss {:.4f}", progress_.step, rate, loss));
      records_.add(ProgressRecord{progress_.step, progress_.epoch, rate, learning_rate(), loss});
    }
    log_time_ = Clock::now();
    log_samples_ = log_own_samples_ = 0;
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
  const auto optimizer_state = engine_->engine().optimizer_state();  // all ranks have a part in it
  if (!is_first_) return;
  TrainProgress progress = progress_;
  if (progress.samples_in_epoch >= data_.train->size()) {
    ++progress.epoch;
    progress.samples_in_epoch = 0;
  }
  console_.progress(fmt::format("saving a checkpoint at step {}", progress.step));
  const fs::path folder =
      save_checkpoint(run_folder_ / "checkpoints", *model_, optimizer_state, engine_->engine().first_updates(),
                      progress, config_, options_.keep_checkpoints);
  records_.add(CheckpointRecord{progress.step, folder.string(), seconds_since(checkpoint_time_)});
  if (is_stopped_)
    console_.line(fmt::format("Stopped by a signal after saving step {}; to go on: tutti train --resume {}",
                              progress.step, run_folder_.string()));
}

void RankTrainer::test() {
  const TraceSpan span(recording(), TraceKind::evaluation);
  engine_->settle();
  const auto start = Clock::now();
  const NoKernelSearch guard(true);
  last_test_ = evaluate(
      *model_, data_.test, comm_,
      {options_.eval_batch, options_.workers, options_.prefetch, place_, options_.precision == "bf16"},
      [this](int64_t done, int64_t all) { console_.progress(fmt::format("testing: {}/{} batches", done, all)); });
  epoch_times_.test_s = seconds_since(start);
  tested_ = true;
}

}  // namespace tutti
