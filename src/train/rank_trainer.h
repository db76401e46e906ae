#pragma once

#include <c10/core/DeviceGuard.h>
#include <torch/types.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/folder_lock.h"
#include "base/smoothed_mean.h"
#include "base/trace.h"
#include "comm/launch_env.h"
#include "comm/nodes.h"
#include "data/loader.h"
#include "data/sampler.h"
#include "model/model.h"
#include "train/best_test.h"
#include "train/checkpoint.h"
#include "train/checkpoint_folder.h"
#include "train/console.h"
#include "train/course.h"
#include "train/device_feed.h"
#include "train/evaluation.h"
#include "train/frozen_parameters.h"
#include "train/options.h"
#include "train/rank_meeting.h"
#include "train/rank_setup.h"
#include "train/resident_data.h"
#include "train/stop_signal.h"
#include "train/time_left.h"
#include "tutti/captured_step.h"
#include "tutti/communicator.h"
#include "tutti/records.h"
#include "tutti/tuned_engine.h"

namespace tutti {

/// One rank's training run.
class RankTrainer {
 public:
  /// `servers`: null where the strategy needs none. `loading` ends with the set-up.
  RankTrainer(const TrainOptions& options, const LaunchEnv& env, Communicator& comm, PushPull* servers,
              std::unique_ptr<EndsAtStopSignal> loading)
      : options_(options),
        env_(env),
        comm_(comm),
        servers_(servers),
        loading_(std::move(loading)),
        console_(comm.rank() == 0, options.quiet     ? Verbosity::quiet
                                   : options.verbose ? Verbosity::verbose
                                                     : Verbosity::usual),
        meeting_(comm),
        is_first_(comm.rank() == 0) {}

  /// False when a signal stopped it after a checkpoint.
  bool run();

 private:
  /// run(), but for the record of an early end.
  bool train();
  // How it begins.
  void start();
  void find_resumed();
  void name_run_folder();
  void lock_run_folder();
  void set_up();
  void open_run_folder();
  void go_on_from_resumed(bool is_compressing);
  /// Where it fits.
  void keep_data_on_device();
  void train_epoch();
  /// Numbers drawn in the step follow from the run's seed, the step and the rank.
  void seed_step();
  Batch next_batch(DeviceFeed& feed);
  /// Writes the next micro-batches into inputs_.
  void fill_inputs(DeviceFeed& feed);
  /// How fast steps go: those since it was last called, all of which are over.
  void note_pace();
  /// `samples` of this rank, out of `global_size` of all.
  void train_step(int64_t samples, int64_t global_size, DeviceFeed& feed);
  /// Steps run as they will run from now on, unless they take long to get there.
  bool is_step_settled() const;
  /// The mean, from the epoch's sum.
  double loss_since_log(double loss_sum);
  void log_step();
  /// `loss`: the mean since the last log line.
  void report_step(double samples_per_s, double loss);
  /// "step 318/471", of the run.
  std::string step_of_run() const;
  std::string progress_text(double samples_per_s) const;
  /// What is known of an epoch before its test. A collective.
  EpochRecord trained_epoch(double loss, int64_t samples);
  /// Tests, reports and saves, or saves what is left to report.
  void end_epoch(EpochRecord record);
  /// Whether to save or to stop, which all ranks have to know of one another.
  void meet_if_due();
  bool is_save_due() const;
  /// `open_epoch`: one whose test and record are still to be made.
  void save(const std::optional<EpochRecord>& open_epoch);
  /// For messages about a run that cannot go on.
  std::string where_to_go_on() const;
  /// Throws TrainingFailed for a loss that is no number.
  void require_finite(double loss, int64_t step) const;
  /// Of the epoch. Waits for the device.
  double finite_loss_sum() const;
  void test();
  /// Compares the last test with those before it, and keeps its weights where they are the best. A collective.
  void follow_best();
  /// Where those kept are of a way that this run goes back from.
  void tell_other_best();
  bool is_out_of_patience() const { return options_.patience > 0 && best_.tests_since() >= options_.patience; }
  void report_epoch(EpochRecord record);
  void tell_stragglers(const EpochRecord& epoch);
  void finish();
  /// For rank 0.
  void write_results(const std::vector<RankSummary>& ranks, const NamedTensors& tensors);
  double learning_rate() const;
  bool saves_checkpoints() const { return options_.saves_checkpoints(); }
  template <typename T>
  std::vector<T> gather(const T& mine) const;
  void follow_plan();
  void record_plan();
  TraceBuffer* recording() const { return trace_ ? trace_->compute() : nullptr; }
  void record_trace();
  void record_end(const EndRecord& end) noexcept;

  const TrainOptions& options_;
  const LaunchEnv& env_;
  Communicator& comm_;
  PushPull* const servers_;
  std::unique_ptr<EndsAtStopSignal> loading_;
  Console console_;
  RankMeeting meeting_;  // after steps
  const bool is_first_;
  std::vector<Node> nodes_;

  torch::Device device_ = torch::kCPU;
  c10::OptionalDeviceGuard device_guard_;
  std::unique_ptr<ComputeStream> stream_;  // for all that follows
  BatchPlace place_;
  TrainTest data_;
  std::shared_ptr<Model> model_;
  FrozenParameters frozen_;
  std::unique_ptr<Trace> trace_;  // null: nothing is recorded
  bool is_trace_written_ = false;
  int decisions_ = 0;  // of the engine on its plan, seen so far
  bool is_searched_ = false;
  std::unique_ptr<TunedEngine> engine_;
  std::unique_ptr<CapturedStep> captured_;
  bool is_capture_told_ = false;
  std::unique_ptr<ResidentData> resident_;  // null: batches come from the loader
  std::vector<Batch> inputs_;               // where a GPU's steps find them then
  std::unique_ptr<Sampler> sampler_;
  ResumeChoice choice_;                  // what to go on from; while setting up
  std::unique_ptr<Checkpoint> resumed_;  // the one of these that is whole; while setting up
  nlohmann::json config_;

  std::filesystem::path run_folder_;
  std::unique_ptr<FolderLock> lock_;  // of it, on rank 0
  RecordWriter records_;
  TrainProgress progress_;
  Course::Sizes sizes_;
  std::unique_ptr<Course> course_;
  int64_t first_step_ = 0;
  std::filesystem::path latest_checkpoint_;  // that this run comes from, or has saved
  int64_t saved_step_ = -1;                  // of it
  std::optional<EpochRecord> open_epoch_;    // from a checkpoint: see CheckpointContent

  // Since the last log line, and since the run began.
  Clock::time_point log_time_{}, checkpoint_time_ = Clock::now();
  int64_t log_step_ = 0;
  int64_t log_samples_ = 0, log_own_samples_ = 0;  // of all ranks, and of this one
  double log_loss_sum_ = 0;                        // what loss_sum_ was then
  torch::Tensor loss_sum_;  // of the epoch, on the device: reading it waits, so only log lines do
  // For people, of this rank's samples. A CPU knows them after each step, a GPU at log lines.
  double step_loss_sum_ = 0, last_loss_ = 0;
  SmoothedMean smoothed_loss_{50};       // steps
  std::optional<double> gradient_norm_;  // at the last log line
  TimeLeft time_left_;
  Clock::time_point pace_time_{};
  int64_t pace_step_ = 0;
  RankTimes epoch_times_, total_times_;
  int64_t total_samples_ = 0;
  int64_t steady_samples_ = 0;
  double steady_s_ = 0;
  Clock::time_point steady_start_{};
  bool is_steady_ = false;
  // Left out of the steady throughput: the first steps build kernels, warm caches and measure the profile.
  int64_t warm_up_steps_ = 10;
  std::vector<double> step_s_, own_step_s_;  // of the epoch: whole, and without waiting for others
  std::vector<int> told_stragglers_;
  const std::chrono::milliseconds pretended_slowness_ = pretended_slowness(comm_.rank());
  EvalCounts last_test_;
  bool tested_ = false;
  BestTest best_;
  bool is_time_to_save_ = false;
  bool is_stopped_ = false;  // by a signal
};

}  // namespace tutti
