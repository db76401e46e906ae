#include <algorithm>
#include <cmath>

#include "plan/strategies/plans.h"
#include "tutti/strategy.h"

namespace tutti {

Plan make_fusion_plan(const Profile& profile, const Links&, int ranks, const StrategyOptions& options) {
  Plan plan = empty_plan(profile, "fusion", ranks);
  // Horovod wakes up every cycle and sends what has become ready since, in messages of at most fusion_bytes.
  const auto cycle = [&](std::size_t slot) {
    return std::floor(profile.gradients[slot].ready_s / std::max(options.fusion_cycle_s, 1e-9));
  };
  std::size_t first = 0;
  int64_t bytes = 0;
  for (std::size_t slot = 0; slot < plan.slots.size(); ++slot) {
    bytes += plan.slots[slot].elements * static_cast<int64_t>(sizeof(float));
    const bool is_last = slot + 1 == plan.slots.size();
    const int64_t next = is_last ? 0 : plan.slots[slot + 1].elements * static_cast<int64_t>(sizeof(float));
    if (!is_last && cycle(slot + 1) <= cycle(slot) && bytes + next <= options.fusion_bytes) continue;
    add_transfer(plan, first, slot, StartsWhen::gradients_ready);
    first = slot + 1;
    bytes = 0;
  }
  return plan;
}

Strategy fusion_strategy() {
  Strategy fusion{"fusion", "every --fusion-cycle-ms, what has become ready goes in one message (as Horovod does)",
                  make_fusion_plan};
  fusion.sizes = {"fusion-mb"};
  fusion.options = {"fusion-cycle-ms"};
  fusion.sizes_to_plan = [](const StrategyOptions& given) {
    std::vector<StrategyOptions> list;
    for (const int64_t mebibytes : {16, 64, 128}) {
      list.push_back(given);
      list.back().fusion_bytes = mebibytes << 20;
    }
    return list;
  };
  return fusion;
}

}  // namespace tutti
