#pragma once

#include <string>
#include <variant>
#include <vector>

#include "tutti/range.h"

namespace tutti {

/// What optimizers can be told. Each says in its `options` which of these it reads.
struct OptimizerOptions {
  std::string name = "sgd";
  double momentum = 0;
  bool nesterov = false;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
  double rate_factor = 1;  // the learning rate of these parameters is the step's times this
};

/// One of these as people and records give it.
struct OptimizerOption {
  using Field = std::variant<double OptimizerOptions::*, bool OptimizerOptions::*>;
  std::string name;  // on the command line: "weight-decay"; in records "weight_decay"
  Field field;
  Range range;
  std::string help;
};
const std::vector<OptimizerOption>& optimizer_options();

/// All that is known about an optimizer beside its arithmetic, which engine/optimizers/ has.
struct Optimizer {
  std::string name;
  std::string summary;               // for --help
  double learning_rate;              // unless somebody says so
  bool needs_whole_tensors;          // an update of a slice depends on all of its tensor: no sharding, no early updates
  std::vector<std::string> options;  // that it reads
};

const std::vector<Optimizer>& optimizers();
std::vector<std::string> optimizer_names();
/// Throws UsageError for an unknown name.
const Optimizer& find_optimizer(const std::string& name);

/// Throws UsageError for an unknown name and for values that make no sense.
void check_optimizer(const OptimizerOptions& options);

}  // namespace tutti
