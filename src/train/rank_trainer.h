#pragma once

#include <torch/types.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/clock.h"
#include "base/trace.h"
#include "comm/launch_env.h"
#include "comm/nodes.h"
#include "data/loader.h"
#include "data/sampler.h"
#include "model/model.h"
#include "train/checkpoint.h"
#include "train/console.h"
#include "train/device_feed.h"
#include "train/evaluation.h"
#include "train/options.h"
#include "train/rank_setup.h"
#include "train/resident_data.h"
#include "tutti/captured_step.h"
#include "tutti/communicator.h"
#include "tutti/records.h"
#include "tutti/tuned_engine.h"

namespace tutti {

/// One rank's training run.
class RankTrainer {
 public:
  /// `servers`: null where the strategy needs none.
  RankTrainer(const TrainOptions& options, const LaunchEnv& env, Communicator& comm, PushPull* servers)
      : options_(options),
        env_(env),
        comm_(comm),
        servers_(servers),
        console_(comm.rank() == 0),
        is_first_(comm.rank() == 0) {}

  /// False when a signal stopped it after a checkpoint.
  bool run();

 private:
  void set_up();
  void open_run_folder();
  /// Where it fits.
  void keep_data_on_device();
  void train_epoch();
  /// Numbers drawn in the step follow from the run's seed, the step and the rank.
  void seed_step();
  Batch next_batch(DeviceFeed& feed);
  /// Writes the next micro-batches into inputs_.
  void fill_inputs(DeviceFeed& feed);
  /// `samples` of this rank, out of `global_size` of all.
  void train_step(int64_t samples, int64_t global_size, DeviceFeed& feed);
  /// Steps run as they will run from now on, unless they take long to get there.
  bool is_step_settled() const;
  void log_step(int64_t step_in_epoch, int64_t steps_in_epoch);
  void save_if_due();
  void test();
  void report_epoch(double loss, int64_t samples);
  void tell_stragglers(const EpochRecord& epoch);
  void finish();
  double learning_rate() const;
  bool saves_checkpoints() const { return options_.checkpoint_steps > 0 || options_.checkpoint_minutes > 0; }
  template <typename T>
  std::vector<T> gather(const T& mine) const;
  void follow_plan();
  void record_plan();
  TraceBuffer* recording() const { return trace_ ? trace_->compute() : nullptr; }
  void record_trace();

  const TrainOptions& options_;
  const LaunchEnv& env_;
  Communicator& comm_;
  PushPull* const servers_;
  Console console_;
  const bool is_first_;
  std::vector<Node> nodes_;

  torch::Device device_ = torch::kCPU;
  std::unique_ptr<ComputeStream> stream_;  // for all that follows
  BatchPlace place_;
  TrainTest data_;
  std::shared_ptr<Model> model_;
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
  std::unique_ptr<Checkpoint> resumed_;  // while setting up
  nlohmann::json config_;

  std::filesystem::path run_folder_;
  RecordWriter records_;
  TrainProgress progress_;
  int64_t total_steps_ = 0;
  int64_t steps_per_epoch_ = 0;
  int64_t first_step_ = 0;

  // Since the last log line, and since the run began.
  Clock::time_point log_time_{}, checkpoint_time_ = Clock::now();
  int64_t log_samples_ = 0, log_own_samples_ = 0;  // of all ranks, and of this one
  double log_loss_sum_ = 0;                        // what loss_sum_ was then
  torch::Tensor loss_sum_;  // of the epoch, on the device: reading it waits, so only log lines do
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
  bool is_stopped_ = false;  // by a signal
};

}  // namespace tutti
