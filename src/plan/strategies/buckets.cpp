#include "plan/sizes.h"
#include "plan/strategies/plans.h"
#include "tutti/strategy.h"

namespace tutti {

Plan make_buckets_plan(const Profile& profile, const Links&, int ranks, const StrategyOptions& options) {
  Plan plan = empty_plan(profile, "buckets", ranks);
  // DDP's rule (Li et al., VLDB 2020): a bucket closes once it has reached its size; the first size is smaller.
  std::size_t first = 0;
  int64_t bytes = 0;
  for (std::size_t slot = 0; slot < plan.slots.size(); ++slot) {
    bytes += plan.slots[slot].elements * static_cast<int64_t>(sizeof(float));
    const int64_t limit = plan.transfers.empty() ? options.first_bucket_bytes : options.bucket_bytes;
    if (bytes < limit && slot + 1 < plan.slots.size()) continue;
    add_transfer(plan, first, slot, StartsWhen::gradients_ready);
    first = slot + 1;
    bytes = 0;
  }
  return plan;
}

Strategy buckets_strategy() {
  Strategy buckets{"buckets", "gradients gathered into buckets of --bucket-mb, each sent when full (as DDP does)",
                   make_buckets_plan};
  buckets.sizes = {"bucket-mb"};
  buckets.options = {"first-bucket-mb"};
  buckets.merging = Merging::by_size;
  buckets.sizes_to_plan = buckets_to_plan;
  buckets.sizes_to_try = buckets_to_try;
  return buckets;
}

}  // namespace tutti
