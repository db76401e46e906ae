#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "data/dataset.h"
#include "model/model.h"
#include "train/schedule.h"
#include "tutti/tuned_engine.h"

namespace tutti {

/// Everything that decides how a training run goes; the defaults are what `tutti train` does.
struct TrainOptions {
  std::string recipe = "";  // where some of the following came from
  std::string model = "mnist-cnn";
  ModelOptions model_options;     // its data is what `data` says
  std::string weights_file = "";  // to start from, .safetensors; empty: random ones
  DataOptions data;
  int64_t epochs = 3;
  int64_t steps = 0;       // stop after so many steps in all; 0: after `epochs`
  int64_t batch = 64;      // per rank
  int64_t accumulate = 1;  // micro-batches per step
  TuneOptions engine;
  double learning_rate = 0;  // 0: the optimizer's own default
  bool scale_lr = false;     // times the number of ranks
  ScheduleOptions schedule;
  uint64_t seed = 1;

  bool evaluate = true;
  int64_t eval_every = 1;  // epochs
  int64_t eval_batch = 250;

  std::string device = "auto";     // auto, cpu, cuda
  std::string precision = "fp32";  // fp32, tf32, bf16
  bool deterministic = false;      // cuda: only kernels that give the same bits every time
  bool graph = true;               // cuda: repeat recorded steps, instead of queuing kernel by kernel
  std::string transport = "auto";  // auto, shm, mpi, nccl
  bool by_node = false;            // mpi: collectives inside nodes first
  int ranks_per_node = 1;          // that add up among themselves before one of them talks to parameter servers
  double link_startup_us = 0;      // with link_gbps: pretend slower links, for experiments
  double link_gbps = 0;            // 0: as fast as they are
  int threads = 1;                 // per rank
  int workers = 1;                 // loader threads per rank
  int prefetch = 4;

  std::string runs_folder = "runs";
  std::string name = "";  // of the run; empty: made from time, model and data
  std::string summary_file = "";
  std::string trace_file = "";  // for Perfetto; empty: none
  int64_t trace_steps = 20;     // recorded for it and for `tutti explain`; 0: none
  int64_t log_every = 100;      // steps
  int64_t checkpoint_steps = 0;
  double checkpoint_minutes = 0;
  int64_t keep_checkpoints = 2;
  std::string resume = "";   // a checkpoint folder, a run folder or a run's name
  bool auto_resume = false;  // go on with the run called `name` if it has a checkpoint, else start it
};

/// Throws UsageError for values that cannot work, before anything is started.
void check_options(const TrainOptions& options);

/// With the option's own defaults filled in (learning rate by optimizer).
double base_learning_rate(const TrainOptions& options);

/// For records: everything that is needed to repeat the run.
nlohmann::json describe_options(const TrainOptions& options);

}  // namespace tutti
