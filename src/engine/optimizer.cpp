#include "engine/optimizer.h"

#include <map>

#include "plan/optimizers.h"

namespace tutti {

#define TUTTI_DECLARE(name, ...) \
  std::unique_ptr<FlatOptimizer> make_##name(const OptimizerOptions& options, const torch::Tensor& like);
TUTTI_FOR_EACH_OPTIMIZER(TUTTI_DECLARE)
#undef TUTTI_DECLARE

FlatOptimizer::FlatOptimizer(const OptimizerOptions& options, std::vector<std::string> state_names,
                             const torch::Tensor& like)
    : options_(options),
      needs_whole_tensors_(find_optimizer(options.name).needs_whole_tensors),
      state_names_(std::move(state_names)) {
  for (std::size_t i = 0; i < state_names_.size(); ++i) state_.push_back(torch::zeros_like(like));
}

std::unique_ptr<FlatOptimizer> make_optimizer(const OptimizerOptions& options, const torch::Tensor& like) {
  using Make = std::unique_ptr<FlatOptimizer> (*)(const OptimizerOptions&, const torch::Tensor&);
#define TUTTI_ENTRY(name, ...) {#name, make_##name},
  static const std::map<std::string, Make> makers = {TUTTI_FOR_EACH_OPTIMIZER(TUTTI_ENTRY)};
#undef TUTTI_ENTRY
  check_optimizer(options);
  return makers.at(options.name)(options, like);
}

}  // namespace tutti
