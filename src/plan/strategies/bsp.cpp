#include "tutti/strategy.h"

namespace tutti {

Plan make_bsp_plan(const Profile& profile, const Links&, int ranks, const StrategyOptions&) {
  Plan plan = empty_plan(profile, "bsp", ranks);
  if (!plan.slots.empty()) add_transfer(plan, 0, plan.slots.size() - 1, StartsWhen::backward_done);
  return plan;
}

Strategy bsp_strategy() {
  Strategy bsp{"bsp", "everything in one all-reduce after backward", make_bsp_plan};
  bsp.overlaps_backward = false;
  return bsp;
}

}  // namespace tutti
