#include "plan/strategies/plans.h"
#include "tutti/strategy.h"

namespace tutti {

Plan make_wfbp_plan(const Profile& profile, const Links&, int ranks, const StrategyOptions&) {
  Plan plan = empty_plan(profile, "wfbp", ranks);
  for (std::size_t slot = 0; slot < plan.slots.size(); ++slot)
    add_transfer(plan, slot, slot, StartsWhen::gradients_ready);
  return plan;
}

Strategy wfbp_strategy() {
  return {"wfbp", "one all-reduce per tensor, as soon as its gradient is ready", make_wfbp_plan};
}

}  // namespace tutti
