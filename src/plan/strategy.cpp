#include "plan/strategy.h"

#include "base/error.h"
#include "base/names.h"

namespace tutti {

const std::vector<Strategy>& strategies() {
  static const std::vector<Strategy> table = {
      {"bsp", "everything in one all-reduce after backward", make_bsp_plan},
      {"wfbp", "one all-reduce per tensor, as soon as its gradient is ready", make_wfbp_plan},
      {"buckets", "gradients gathered into buckets of --bucket-mb, each sent when full (as DDP does)", make_buckets_plan},
  };
  return table;
}

std::vector<std::string> strategy_names() {
  std::vector<std::string> names;
  for (const Strategy& strategy : strategies()) names.emplace_back(strategy.name);
  return names;
}

const Strategy& find_strategy(const std::string& name) {
  for (const Strategy& strategy : strategies())
    if (name == strategy.name) return strategy;
  throw UsageError(unknown_name("strategy", name, strategy_names()));
}

}  // namespace tutti
