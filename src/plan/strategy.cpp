#include "plan/strategy.h"

#include "base/error.h"
#include "base/names.h"

namespace tutti {

const std::vector<Strategy>& strategies() {
  static const std::vector<Strategy> table = {
      {"bsp", "everything in one all-reduce after backward", false, make_bsp_plan},
      {"wfbp", "one all-reduce per tensor, as soon as its gradient is ready", false, make_wfbp_plan},
      {"buckets", "gradients gathered into buckets of --bucket-mb, each sent when full (as DDP does)", false,
       make_buckets_plan},
      {"fusion", "every --fusion-cycle-ms, what has become ready goes in one message (as Horovod does)", false,
       make_fusion_plan},
      {"mgwfbp", "tensors merged where the measured profile and links say that it pays", true, make_mgwfbp_plan},
      {"bytescheduler", "partitions, the next forward's first layers first; each layer's forward waits for its own",
       true, make_bytescheduler_plan},
      {"dear", "reduce-scatter in backward, all-gather in the next forward", false, make_dear_plan},
      {"zero1", "as dear, and each rank keeps and updates only its share of the optimizer's state", false,
       make_zero1_plan},
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
