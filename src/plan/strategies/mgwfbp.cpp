// MG-WFBP (Shi et al., INFOCOM 2019). Gradients are numbered in the order of backward; a message of n bytes costs a + B
// n. Message k can start when its last gradient is ready and message k - 1 is through: s[k] = max(s[k-1] + c[k-1],
// r[k]). Message k is merged into k + 1 when the next gradient is there before k, started at once, would be past its
// start-up: r[k+1] < s[k] + a. Merging then saves one start-up and delays nothing that was not waiting already.
#include <algorithm>

#include "plan/cost_model.h"
#include "plan/strategies/plans.h"
#include "tutti/strategy.h"

namespace tutti {

Plan make_mgwfbp_plan(const Profile& profile, const Links& links, int ranks, const StrategyOptions& options) {
  Plan plan = empty_plan(profile, "mgwfbp", ranks);
  const double startup = links.all_reduce.startup_s;
  std::size_t first = 0;  // of the message under construction
  double link_free = 0;   // when the messages before it are through
  int64_t bytes = 0;
  for (std::size_t slot = 0; slot < plan.slots.size(); ++slot) {
    bytes += plan.slots[slot].elements * static_cast<int64_t>(sizeof(float));
    const double start = std::max(link_free, profile.gradients[slot].ready_s);
    const bool is_last = slot + 1 == plan.slots.size();
    if (!is_last && profile.gradients[slot + 1].ready_s < start + startup) continue;
    add_transfer(plan, first, slot, StartsWhen::gradients_ready);
    link_free = start + links.all_reduce.seconds(bytes);
    first = slot + 1;
    bytes = 0;
  }
  // The rule looks one gradient ahead; where one of the extremes is better under the same model, that is the plan.
  for (Plan extreme : {make_wfbp_plan(profile, links, ranks, options), make_bsp_plan(profile, links, ranks, options)}) {
    for (Transfer& transfer : extreme.transfers) transfer.starts = StartsWhen::gradients_ready;
    if (predict_step(extreme, profile, links).synchronized_s < predict_step(plan, profile, links).synchronized_s)
      plan.transfers = extreme.transfers;
  }
  return plan;
}

Strategy mgwfbp_strategy() {
  Strategy mgwfbp{"mgwfbp", "tensors merged where the measured profile and links say that it pays", make_mgwfbp_plan};
  mgwfbp.uses_links = true;
  mgwfbp.merging = Merging::by_cost;
  return mgwfbp;
}

}  // namespace tutti
