#include "plan/optimizers.h"

#include <algorithm>

#include "base/names.h"
#include "tutti/error.h"
#include "tutti/optimizer.h"

namespace tutti {

const std::vector<Optimizer>& optimizers() {
#define TUTTI_ROW(name, rate, needs_whole_tensors, summary, ...) \
  {#name, summary, rate, needs_whole_tensors, {__VA_ARGS__}},
  static const std::vector<Optimizer> table = {TUTTI_FOR_EACH_OPTIMIZER(TUTTI_ROW)};
#undef TUTTI_ROW
  return table;
}

const std::vector<OptimizerOption>& optimizer_options() {
  using Options = OptimizerOptions;
  static const Range below_1{0, 1, false, true};
  static const std::vector<OptimizerOption> table = {
      {"momentum", &Options::momentum, below_1, "how much of the last step goes on"},
      {"nesterov", &Options::nesterov, {}, "Nesterov momentum"},
      {"beta1", &Options::beta1, below_1, "how long the mean of the gradients remembers"},
      {"beta2", &Options::beta2, below_1, "how long the mean of their squares remembers"},
      {"epsilon", &Options::epsilon, {}, "added to the root of that mean"},
      {"weight-decay", &Options::weight_decay, at_least(0), "L2 for sgd and adam, decoupled for others"},
  };
  return table;
}

std::vector<std::string> optimizer_names() {
  std::vector<std::string> names;
  for (const Optimizer& optimizer : optimizers()) names.push_back(optimizer.name);
  return names;
}

const Optimizer& find_optimizer(const std::string& name) {
  for (const Optimizer& optimizer : optimizers())
    if (optimizer.name == name) return optimizer;
  throw UsageError(unknown_name("optimizer", name, optimizer_names()));
}

void check_optimizer(const OptimizerOptions& options) {
  const std::vector<std::string>& read = find_optimizer(options.name).options;
  for (const OptimizerOption& option : optimizer_options()) {
    const double value = std::visit([&](auto field) { return static_cast<double>(options.*field); }, option.field);
    if (!option.range.has(value))
      throw UsageError("--{} is {}: it must be {}", option.name, value, option.range.describe());
  }
  const bool reads_nesterov = std::find(read.begin(), read.end(), "nesterov") != read.end();
  if (reads_nesterov && options.nesterov && options.momentum == 0)
    throw UsageError("--nesterov needs --momentum above 0");
}

}  // namespace tutti
