// Push-pull with parameter servers (BytePS: Jiang et al., OSDI 2020): gradients are cut into partitions, each partition
// has its server, and several are under way at once, so that pushes, sums and pulls overlap.
#include <algorithm>

#include "plan/partitions.h"
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

}  // namespace tutti
