#pragma once

#include <torch/types.h>

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
#include "train/evaluation.h"
#include "train/options.h"
#include "train/rank_times.h"
#include "train/records.h"
#include "tutti/communicator.h"
#include "tutti/engine.h"

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
  void train_epoch();
  void train_step(const std::vector<int64_t>& micro_sizes, int64_t global_size, Loader& loader);
  void log_step(int64_t step_in_epoch, int64_t steps_in_epoch);
  void save_if_due();
  void test();
  void report_epoch(const RankTimes& times, double loss, int64_t samples);
  void finish();
  double learning_rate() const;
  bool saves_checkpoints() const { return options_.checkpoint_steps > 0 || options_.checkpoint_minutes > 0; }
  std::vector<nlohmann::json> gather(const nlohmann::json& mine) const;
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
  nlohmann::json config_;

  std::filesystem::path run_folder_;
  RecordFile records_;
  TrainProgress progress_;
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
  // Left out of the steady throughput: the first steps build kernels, warm caches and measure the profile.
  int64_t warm_up_steps_ = 10;
  std::vector<double> step_s_;  // of the epoch
  EvalCounts last_test_;
  bool tested_ = false;
  bool is_stopped_ = false;  // by a signal
};

}  // namespace tutti
