#include "train/options.h"

#include "base/names.h"
#include "comm/transport.h"
#include "data/dataset.h"
#include "model/model.h"
#include "train/schedule.h"
#include "tutti/error.h"

namespace tutti {

KnownNames known_names() {
  return {model_names(), data_names(), schedule_names(), transport_names(), transport_help()};
}

void check_options(const TrainOptions& options) {
  check_values(options, known_names());
  if (const std::string problem = problem_of_folder_name(options.name); !options.name.empty() && !problem.empty())
    throw UsageError("--name '{}' cannot name a run's folder: {}. --runs says where that folder lies.", options.name,
                     problem);
  // What depends on several options.
  check_optimizer(options.optimizer);
  check_wire(engine_options(options));
  if (options.by_node && options.transport != kAutoTransport && !find_transport(options.transport).started_by_mpirun)
    throw UsageError("--by-node joins nodes over MPI: use it with --transport mpi or auto, not {}", options.transport);
  if (!options.evaluate && (!options.keep_best.empty() || options.patience > 0))
    throw UsageError("--{} compares tests: leave --no-eval out", options.keep_best.empty() ? "patience" : "keep-best");
  if (options.strict_weights && options.weights_file.empty() && options.resume.empty())
    throw UsageError("--strict-weights says how --weights is read: give both");
  if (options.quiet && options.verbose) throw UsageError("--quiet and --verbose contradict each other: leave one out");
  if (!options.trace_file.empty() && options.trace_steps < 1)
    throw UsageError("--trace-steps is {}: it must be at least 1 with --trace", options.trace_steps);
}

TuneOptions engine_options(const TrainOptions& options) {
  TuneOptions engine;
  engine.strategy = options.strategy;
  engine.strategy_options = options.strategy_options;
  engine.optimizer = options.optimizer;
  engine.wire = options.wire;
  engine.topk_ratio = options.topk_ratio;
  engine.clip_norm = options.clip_norm;
  if (options.head_learning_rate > 0) {
    OptimizerOptions head = options.optimizer;
    head.rate_factor = options.head_learning_rate / base_learning_rate(options);
    engine.more_groups.push_back(head);
  }
  return engine;
}

}  // namespace tutti
