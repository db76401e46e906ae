#include "engine/optimizer.h"

#include <algorithm>

#include "base/names.h"
#include "tutti/error.h"

namespace tutti {
namespace {

void check(const OptimizerOptions& options) {
  const auto names = optimizer_names();
  if (std::find(names.begin(), names.end(), options.name) == names.end())
    throw UsageError(unknown_name("optimizer", options.name, names));
  const auto in_unit_range = [](const char* what, double value) {
    if (!(value >= 0 && value < 1)) throw UsageError("{} is {}: it must be at least 0 and below 1", what, value);
  };
  in_unit_range("--momentum", options.momentum);
  in_unit_range("--beta1", options.beta1);
  in_unit_range("--beta2", options.beta2);
  if (!(options.weight_decay >= 0))
    throw UsageError("--weight-decay is {}: it must not be negative", options.weight_decay);
  if (options.name == "sgd" && options.nesterov && options.momentum == 0)
    throw UsageError("--nesterov needs --momentum above 0");
}

}  // namespace

FlatOptimizer::FlatOptimizer(const OptimizerOptions& options, const torch::Tensor& like) : options_(options) {
  if (options.name != "sgd")
    state_names_ = {"exp_avg", "exp_avg_sq"};
  else if (options.momentum != 0)
    state_names_ = {"momentum"};
  for (std::size_t i = 0; i < state_names_.size(); ++i) state_.push_back(torch::zeros_like(like));
}

std::vector<std::string> optimizer_names() { return {"sgd", "adam", "adamw"}; }

std::unique_ptr<FlatOptimizer> make_optimizer(const OptimizerOptions& options, const torch::Tensor& like) {
  check(options);
  return like.is_cuda() ? make_cuda_optimizer(options, like) : make_cpu_optimizer(options, like);
}

}  // namespace tutti
