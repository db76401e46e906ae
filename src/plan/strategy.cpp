#include "tutti/strategy.h"

#include <algorithm>

#include "base/names.h"
#include "tutti/error.h"

namespace tutti {

const std::vector<Strategy>& strategies() {
  static const std::vector<Strategy> table = {
      {"bsp", "everything in one all-reduce after backward", false, false, make_bsp_plan},
      {"wfbp", "one all-reduce per tensor, as soon as its gradient is ready", false, false, make_wfbp_plan},
      {"buckets", "gradients gathered into buckets of --bucket-mb, each sent when full (as DDP does)", false, false,
       make_buckets_plan},
      {"fusion", "every --fusion-cycle-ms, what has become ready goes in one message (as Horovod does)", false, false,
       make_fusion_plan},
      {"mgwfbp", "tensors merged where the measured profile and links say that it pays", true, false, make_mgwfbp_plan},
      {"bytescheduler", "partitions, the next forward's first layers first; each layer's forward waits for its own",
       true, false, make_bytescheduler_plan},
      {"dear", "reduce-scatter in backward, all-gather in the next forward", false, false, make_dear_plan},
      {"zero1", "as dear, and each rank keeps and updates only its share of the optimizer's state", false, false,
       make_zero1_plan},
      {"bsp-ps", "partitions pushed to parameter servers after backward, sums pulled back", false, true,
       make_bsp_ps_plan},
      {"wfbp-ps", "each tensor's partitions pushed as soon as its gradient is ready", false, true, make_wfbp_ps_plan},
      {"bytescheduler-ps", "as bytescheduler, through parameter servers", true, true, make_bytescheduler_ps_plan},
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

bool sums_by_all_reduce(const Strategy& strategy) {
  const Profile any{{{"any", 0, 1, 0, 0}}, 0, 0};
  const Plan plan = strategy.make_plan(any, {}, 2, {});
  return std::all_of(plan.transfers.begin(), plan.transfers.end(),
                     [](const Transfer& transfer) { return transfer.operation == Operation::all_reduce; });
}

}  // namespace tutti
