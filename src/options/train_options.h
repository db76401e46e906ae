#pragma once

#include <cstdint>
#include <string>

#include "options/schedule_options.h"
#include "tutti/data_options.h"
#include "tutti/model_options.h"
#include "tutti/optimizer.h"
#include "tutti/strategy.h"

namespace tutti {

/// Everything that decides how a training run goes; the defaults are what `tutti train` does. What each means, and what
/// it may be, is in the table of option_table.cpp.
struct TrainOptions {
  std::string recipe = "";  // where some of the following came from
  std::string plugin = "";  // was loaded before these options were read
  std::string model = "mnist-cnn";
  ModelOptions model_options;     // its data is what `data` says
  std::string weights_file = "";  // to start from, .safetensors or a run; empty: random ones
  bool strict_weights = false;    // all of them have to fit
  std::string freeze = "";        // names of parameters that stay as they are, as a shell's patterns between commas
  DataOptions data;
  int64_t epochs = 3;
  int64_t steps = 0;       // stop after so many steps in all; 0: after `epochs`
  int64_t batch = 64;      // per rank
  int64_t accumulate = 1;  // micro-batches per step
  uint64_t seed = 1;

  OptimizerOptions optimizer{"sgd", 0.9};
  double learning_rate = 0;       // 0: the optimizer's own default
  double head_learning_rate = 0;  // of the last layer; 0: as all others
  bool scale_lr = false;          // times the number of ranks
  double clip_norm = 0;           // global norm that gradients are clipped to; 0: never
  ScheduleOptions schedule;

  int ranks = -1;          // -1: as many as suit the machine
  int threads = -1;        // per rank; -1: its share of the cores
  std::string hosts = "";  // to start ranks on; empty: this machine
  int max_restarts = 0;
  std::string strategy = "buckets";
  StrategyOptions strategy_options;
  std::string wire = "fp32";  // the format in which gradients travel
  double topk_ratio = 0.01;   // of the gradients, that wire format topk keeps
  std::string transport = "auto";
  bool by_node = false;        // mpi: collectives inside nodes first
  int ranks_per_node = 1;      // that add up among themselves before one of them talks to parameter servers
  double link_startup_us = 0;  // with link_gbps: pretend slower links, for experiments
  double link_gbps = 0;        // 0: as fast as they are
  double comm_timeout_s = 300;
  std::string device = "auto";
  std::string precision = "fp32";
  bool deterministic = false;  // cuda: only kernels that give the same bits every time
  bool graph = true;           // cuda: repeat recorded steps, instead of queuing kernel by kernel
  int kernel_search = 0;       // cuda: cuDNN's kernels that are tried for a convolution; 0: its own choice
  int workers = 1;             // loader threads per rank
  int prefetch = 4;

  bool evaluate = true;
  int64_t eval_every = 1;  // epochs
  int64_t eval_batch = 250;
  std::string keep_best = "";  // a metric: the weights that were best by it are kept; empty: no such weights are
  int64_t patience = 0;        // tests without improvement after which the run ends; 0: never
  std::string runs_folder = "runs";
  std::string name = "";  // of the run; empty: made from time, model and data
  bool quiet = false;     // say only what the run came to, and problems
  bool verbose = false;   // and its steps and ranks
  std::string summary_file = "";
  std::string trace_file = "";  // for Perfetto; empty: none
  int64_t trace_steps = 20;     // recorded for it and for `tutti explain`; 0: none
  bool tensorboard = false;     // event files in the run's folder
  int64_t log_every = 100;      // steps
  int64_t checkpoint_steps = 0;
  double checkpoint_minutes = 0;
  int64_t keep_checkpoints = 2;
  std::string resume = "";   // a checkpoint folder, a run folder or a run's name
  bool auto_resume = false;  // go on with the run called `name` if it has a checkpoint, else start it

  bool saves_checkpoints() const { return checkpoint_steps > 0 || checkpoint_minutes > 0; }
};

constexpr int kMostRanks = 64;

/// The learning rate given, or else the optimizer's own.
double base_learning_rate(const TrainOptions& options);

}  // namespace tutti
