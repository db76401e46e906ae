#include "train/rank_trainer.h"

#include <ATen/Context.h>
#include <c10/core/DeviceGuard.h>
#include <torch/cuda.h>
#include <torch/utils.h>

#include <thread>
#include <utility>

#include "base/torch_compat.h"
#include "status/status_board.h"
#include "train/same_weights.h"
#include "train/schedule.h"
#include "tutti/error.h"

namespace tutti {
namespace {

/// While this is alive, cuDNN's own choice of a kernel is taken: a search (--kernel-search) takes seconds, and pays
/// only for shapes that come again and again.
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

bool RankTrainer::run() {
  try {
    const bool is_done = train();
    if (!is_done) record_end({/*is_failed=*/false, progress_.step, "stopped by a signal"});
    return is_done;
  } catch (const std::exception& error) {
    record_end({/*is_failed=*/true, progress_.step, error.what()});
    throw;
  }
}

bool RankTrainer::train() {
  StatusBoard& status = StatusBoard::get();
  status.enter(RunPhase::set_up);
  start();
  loading_.reset();  // from now on a signal finds something to save
  status.enter(RunPhase::profile);
  status.step_done(progress_.step, progress_.step + course_->steps_left(progress_), 0);
  try {
    if (open_epoch_) {
      end_epoch(*std::exchange(open_epoch_, std::nullopt));
      if (!is_stopped_) save({});  // with nothing left to report
    }
    while (course_->steps_left(progress_) > 0 && !is_stopped_ && !is_out_of_patience()) train_epoch();
    if (is_stopped_) return false;
    status.enter(RunPhase::finishing);
    finish();
    return !is_stopped_;
  } catch (const CommFailed& failure) {
    const std::string me = fmt::format("rank {}/{}", comm_.rank(), comm_.size());
    if (std::string(failure.what()).rfind(me, 0) == 0) throw;  // a transfer's own message says more
    throw CommFailed("{}, after step {}: {}", me, progress_.step, failure.what());
  }
}

bool RankTrainer::is_step_settled() const {
  constexpr int64_t kLongestStart = 60;  // steps
  return !device_.is_cuda() || !options_.graph || captured_->is_recorded() || !captured_->remark().empty() ||
         progress_.step - first_step_ >= kLongestStart;
}

double RankTrainer::learning_rate() const {
  const double base = base_learning_rate(options_) * (options_.scale_lr ? comm_.size() : 1);
  return base * schedule_factor(options_.schedule, course_->first_steps(progress_), course_->first_steps_in_all(),
                                course_->first_steps_per_epoch());
}

void RankTrainer::train_epoch() {
  sampler_->begin_epoch(progress_.epoch, progress_.samples_in_epoch);
  const int64_t steps = course_->steps_left_in_epoch(progress_);
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

  frozen_.enter_training(*model_);
  epoch_times_ = {};
  step_s_.clear();
  own_step_s_.clear();
  loss_sum_.zero_();
  int64_t epoch_samples = 0, my_samples = 0;
  double epoch_loss = 0;
  Loader loader(data_.train, std::move(batches),
                {options_.workers, options_.prefetch, device_.is_cuda(), progress_.epoch});
  DeviceFeed feed(loader, place_);
  const auto start = Clock::now();
  auto step_start = start;
  double set_aside_s = 0;  // spent on checkpoints, not on training
  log_time_ = pace_time_ = start;
  log_step_ = pace_step_ = progress_.step;
  log_samples_ = log_own_samples_ = 0;
  log_loss_sum_ = 0;
  if (is_steady_) steady_start_ = start;
  for (int64_t step = 0; step < steps; ++step) {
    const int64_t global_size = sampler_->global_size(step);
    const int64_t my_size = step_sizes[static_cast<std::size_t>(step)];
    const double waited_before_s = epoch_times_.comm_exposed_s;
    std::this_thread::sleep_for(pretended_slowness_);
    train_step(my_size, global_size, feed);
    my_samples += my_size;
    epoch_samples += global_size;
    log_samples_ += global_size;
    log_own_samples_ += my_size;
    ++progress_.step;
    progress_.samples_in_epoch += global_size;
    step_s_.push_back(seconds_since(step_start));
    own_step_s_.push_back(step_s_.back() - (epoch_times_.comm_exposed_s - waited_before_s));
    step_start = Clock::now();
    if (is_steady_) steady_samples_ += global_size;
    StatusBoard::get().step_done(progress_.step, progress_.step + course_->steps_left(progress_), global_size);
    follow_plan();
    if (!is_steady_ && progress_.step - first_step_ >= warm_up_steps_ && decisions_ > 0 && is_step_settled()) {
      if (device_.is_cuda()) torch::cuda::synchronize();
      is_steady_ = true;
      warm_up_steps_ = progress_.step - first_step_;
      steady_start_ = Clock::now();
    }
    log_step();
    const auto before_saving = Clock::now();
    meet_if_due();
    // At the end of an epoch, its test and its record come before.
    if (step + 1 < steps && is_save_due()) save({});
    set_aside_s += seconds_since(before_saving);
    if (step + 1 < steps && is_stopped_) return;
  }
  epoch_loss = finite_loss_sum();  // waits for the device
  note_pace();
  loss_since_log(epoch_loss);
  epoch_times_.train_s = seconds_since(start) - set_aside_s;
  if (is_steady_) steady_s_ += seconds_since(steady_start_) - set_aside_s;
  epoch_times_.data_wait_s = loader.waited_s();
  total_samples_ += epoch_samples;

  progress_ = course_->settled(progress_);
  tested_ = false;
  end_epoch(trained_epoch(epoch_loss, my_samples));
}

void RankTrainer::end_epoch(EpochRecord record) {
  const bool is_over = progress_.samples_in_epoch == 0 && progress_.epoch % options_.eval_every == 0;
  const bool is_test_due = options_.evaluate && !is_stopped_ && (is_over || course_->steps_left(progress_) == 0);
  if (is_test_due) test();
  if (is_stopped_) {
    save(record);  // which has no time to wait for the test: a resumed run makes it
    return;
  }
  report_epoch(std::move(record));
  if (is_test_due) follow_best();
  if (trace_ && trace_->is_over()) record_trace();
  total_times_.add(epoch_times_);
  if (is_save_due()) save({});
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
  step_loss_sum_ = 0;
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
      if (device_.is_cpu()) {  // elsewhere reading it waits
        const double value = loss.item<double>();
        require_finite(value, progress_.step + 1);
        step_loss_sum_ += value * static_cast<double>(size);
      }
      engine_->backward(loss, static_cast<double>(size) / static_cast<double>(global_size), first + size == samples);
      loss_sum_.add_(loss.detach(), static_cast<double>(size));
    }
    if (resident_) resident_->advance(samples);
    return engine_->finish_step(rate);
  };
  const StepTimes times = is_whole ? captured_->run(rate, run_step, fill) : run_step();
  if (!captured_->is_next_eager()) feed.fetch_ahead();
  if (device_.is_cpu() && samples > 0) {
    last_loss_ = step_loss_sum_ / static_cast<double>(samples);
    smoothed_loss_.add(last_loss_);
  }
  epoch_times_.comm_s += times.comm_busy_s;
  epoch_times_.comm_exposed_s += times.comm_exposed_s;
}

void RankTrainer::note_pace() {
  const auto now = Clock::now();
  time_left_.steps_took(std::chrono::duration<double>(now - pace_time_).count(), progress_.step - pace_step_);
  pace_time_ = now;
  pace_step_ = progress_.step;
}

double RankTrainer::loss_since_log(double loss_sum) {
  const double loss = (loss_sum - log_loss_sum_) / static_cast<double>(std::max<int64_t>(1, log_own_samples_));
  log_loss_sum_ = loss_sum;
  if (device_.is_cuda() && log_own_samples_ > 0) {
    last_loss_ = loss;
    smoothed_loss_.add(loss, progress_.step - log_step_);
  }
  return loss;
}

void RankTrainer::log_step() {
  const bool is_logged = progress_.step % options_.log_every == 0;
  if (device_.is_cpu()) note_pace();
  if (!is_logged && !console_.is_progress_due()) return;
  if (device_.is_cuda() && is_logged) {
    torch::cuda::synchronize();  // the host may be many steps ahead
    note_pace();
  }
  const double rate = static_cast<double>(log_samples_) / std::max(seconds_since(log_time_), 1e-9);
  if (is_logged) {
    const double loss_sum = finite_loss_sum();
    const double loss = loss_since_log(loss_sum);
    if (is_first_) {
      gradient_norm_ = engine_->engine().gradient_norm();
      report_step(rate, loss);
    }
    log_time_ = Clock::now();
    log_step_ = progress_.step;
    log_samples_ = log_own_samples_ = 0;
  }
  console_.progress(progress_text(rate));
}

void RankTrainer::test() {
  const TraceSpan span(recording(), TraceKind::evaluation);
  const PhaseSpan phase(RunPhase::evaluation);
  engine_->settle();
  require_same_weights(*model_, comm_, fmt::format("after step {}", progress_.step), where_to_go_on());
  const auto start = Clock::now();
  const NoKernelSearch guard(true);
  RankMeeting meeting(comm_);
  const auto counts =
      evaluate(*model_, data_.test, comm_,
               {options_.eval_batch, options_.workers, options_.prefetch, place_, options_.precision == "bf16"},
               [&](int64_t done, int64_t all) {
                 console_.progress(fmt::format("testing: {}/{} batches", done, all));
                 if (!saves_checkpoints() || !meeting.is_due()) return true;
                 is_stopped_ = meeting.sum({stop_signal() != 0 ? 1 : 0})[0] != 0;
                 return !is_stopped_;
               });
  epoch_times_.test_s = seconds_since(start);
  if (!counts) return;
  time_left_.test_took(epoch_times_.test_s);
  last_test_ = *counts;
  tested_ = true;
}

}  // namespace tutti
