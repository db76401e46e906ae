// Push-pull with parameter servers (BytePS: Jiang et al., OSDI 2020): gradients are cut into partitions, each partition
// has its server, and several are under way at once, so that pushes, sums and pulls overlap.
#include <algorithm>

#include "plan/partitions.h"
#include "plan/sizes.h"
#include "plan/strategies/plans.h"
#include "tutti/strategy.h"

namespace tutti {
namespace {

Plan through_servers(Plan plan, const StrategyOptions& options) {
  const int64_t partition = options.partition_bytes > 0 ? options.partition_bytes : StrategyOptions{}.partition_bytes;
  std::vector<Transfer> partitions;
  for (const Transfer& transfer : plan.transfers)
    for (const Transfer& part : cut(transfer, partition)) partitions.push_back(part);
  plan.transfers = std::move(partitions);
  place_on_servers(plan, options.servers > 0 ? options.servers : plan.ranks);
  plan.max_in_flight = partitions_in_flight(options.credit_bytes, partition);
  return plan;
}

/// What all that go through servers have in common.
Strategy pushing(Strategy strategy) {
  strategy.sizes = {"partition-mb", "credit-mb"};
  strategy.uses_servers = true;
  strategy.only_all_reduces = false;
  strategy.sizes_to_plan = partitions_to_plan;
  strategy.sizes_to_try = pushed_partitions_to_try;
  return strategy;
}

}  // namespace

Plan make_bsp_ps_plan(const Profile& profile, const Links& links, int ranks, const StrategyOptions& options) {
  Plan plan = make_bsp_plan(profile, links, ranks, options);
  plan.strategy = "bsp-ps";
  return through_servers(std::move(plan), options);
}

Plan make_wfbp_ps_plan(const Profile& profile, const Links& links, int ranks, const StrategyOptions& options) {
  Plan plan = make_wfbp_plan(profile, links, ranks, options);
  plan.strategy = "wfbp-ps";
  return through_servers(std::move(plan), options);
}

Strategy bsp_ps_strategy() {
  Strategy strategy =
      pushing({"bsp-ps", "partitions pushed to parameter servers after backward, sums pulled back", make_bsp_ps_plan});
  strategy.overlaps_backward = false;
  return strategy;
}

Strategy wfbp_ps_strategy() {
  return pushing({"wfbp-ps", "each tensor's partitions pushed as soon as its gradient is ready", make_wfbp_ps_plan});
}

Strategy bytescheduler_ps_strategy() {
  Strategy strategy =
      pushing({"bytescheduler-ps", "as bytescheduler, through parameter servers", make_bytescheduler_ps_plan});
  strategy.uses_links = true;
  return strategy;
}

}  // namespace tutti
