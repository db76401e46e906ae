// DeAR (Zhang et al., ICDCS 2023): an all-reduce is a reduce-scatter and an all-gather. The first half of each group
// goes as soon as its gradients are ready, the second in the next forward, so that both passes hide communication.
#include <algorithm>
#include <numeric>

#include "plan/sizes.h"
#include "plan/strategies/plans.h"
#include "tutti/strategy.h"

namespace tutti {
namespace {

Plan two_halves(const Profile& profile, const char* name, int ranks, const StrategyOptions& options) {
  Plan plan = empty_plan(profile, name, ranks);
  plan.barrier = Barrier::next_forward;
  std::vector<double> needed_s;  // by group: when forward first needs something of it
  std::size_t first = 0;
  int64_t bytes = 0;
  for (std::size_t slot = 0; slot < plan.slots.size(); ++slot) {
    bytes += plan.slots[slot].elements * static_cast<int64_t>(sizeof(float));
    if (bytes < options.bucket_bytes && slot + 1 < plan.slots.size()) continue;
    add_transfer(plan, first, slot, StartsWhen::gradients_ready);
    plan.transfers.back().operation = Operation::reduce_scatter;
    double needed = profile.gradients[first].needed_s;
    for (std::size_t i = first; i <= slot; ++i) needed = std::min(needed, profile.gradients[i].needed_s);
    needed_s.push_back(needed);
    first = slot + 1;
    bytes = 0;
  }
  std::vector<std::size_t> groups(plan.transfers.size());
  std::iota(groups.rbegin(), groups.rend(), std::size_t{0});
  std::stable_sort(groups.begin(), groups.end(),
                   [&](std::size_t a, std::size_t b) { return needed_s[a] < needed_s[b]; });
  for (const std::size_t group : groups) {
    Transfer gather = plan.transfers[group];
    gather.operation = Operation::all_gather;
    gather.starts = StartsWhen::backward_done;
    gather.after = static_cast<int>(group);
    plan.transfers.push_back(gather);
  }
  return plan;
}

Plan make_zero1_plan(const Profile& profile, const Links&, int ranks, const StrategyOptions& options) {
  Plan plan = two_halves(profile, "zero1", ranks, options);
  plan.sharded_optimizer = true;
  return plan;
}

}  // namespace

Plan make_dear_plan(const Profile& profile, const Links&, int ranks, const StrategyOptions& options) {
  return two_halves(profile, "dear", ranks, options);
}

Strategy dear_strategy() {
  Strategy dear{"dear", "reduce-scatter in backward, all-gather in the next forward", make_dear_plan};
  dear.sizes = {"bucket-mb"};
  dear.only_all_reduces = false;
  dear.sizes_to_plan = buckets_to_plan;
  dear.sizes_to_try = buckets_to_try;
  return dear;
}

Strategy zero1_strategy() {
  Strategy zero1 = dear_strategy();
  zero1.name = "zero1";
  zero1.summary = "as dear, and each rank keeps and updates only its share of the optimizer's state";
  zero1.make_plan = make_zero1_plan;
  return zero1;
}

}  // namespace tutti
