// ByteScheduler (Peng et al., SOSP 2019). Tensors are split into partitions; of those that are ready, the one whose
// layer runs first in the next forward goes first, as long as the bytes under way leave credit (it may go below zero by
// one partition). Ranks must issue collectives in one order, so the order is found here, on the measured profile and
// links, and fixed.
#include <algorithm>
#include <deque>
#include <limits>
#include <numeric>

#include "plan/cost_model.h"
#include "plan/partitions.h"
#include "plan/sizes.h"
#include "plan/strategies/plans.h"
#include "tutti/strategy.h"

namespace tutti {
namespace {

struct Partition {
  Transfer transfer;
  double ready_s = 0;
  std::size_t priority = 0;  // smaller goes first
  bool is_issued = false;
};

std::vector<Partition> split(const Plan& plan, const Profile& profile, int64_t partition_bytes) {
  std::vector<std::size_t> by_need(plan.slots.size());
  std::iota(by_need.rbegin(), by_need.rend(),
            std::size_t{0});  // unmeasured: the last gradients belong to the first layers
  std::stable_sort(by_need.begin(), by_need.end(), [&](std::size_t a, std::size_t b) {
    return profile.gradients[a].needed_s < profile.gradients[b].needed_s;
  });
  std::vector<std::size_t> priority(plan.slots.size());
  for (std::size_t i = 0; i < by_need.size(); ++i) priority[by_need[i]] = i;

  std::vector<Partition> partitions;
  for (std::size_t slot = 0; slot < plan.slots.size(); ++slot)
    for (const Transfer& part : cut(transfer_over(plan, slot, slot), partition_bytes))
      partitions.push_back({part, profile.gradients[slot].ready_s, priority[slot], false});
  return partitions;
}

/// Through `servers` parameter servers; with none, by all-reduce.
Plan scheduled_plan(const Profile& profile, const Links& links, int ranks, int servers, int64_t partition_bytes,
                    int64_t credit_bytes) {
  Plan plan = empty_plan(profile, servers > 0 ? "bytescheduler-ps" : "bytescheduler", ranks);
  const LinkCost& cost = servers > 0 ? links.push_pull : links.all_reduce;
  plan.barrier = Barrier::next_forward;
  std::vector<Partition> partitions = split(plan, profile, partition_bytes);
  struct UnderWay {
    double end_s;
    int64_t bytes;
  };
  std::deque<UnderWay> under_way;
  double now = 0, link_free = 0;
  int64_t credit = credit_bytes;
  while (plan.transfers.size() < partitions.size()) {
    Partition* best = nullptr;
    double next_event = under_way.empty() ? std::numeric_limits<double>::infinity() : under_way.front().end_s;
    for (Partition& partition : partitions) {
      if (partition.is_issued) continue;
      if (partition.ready_s > now)
        next_event = std::min(next_event, partition.ready_s);
      else if (best == nullptr || partition.priority < best->priority)
        best = &partition;
    }
    if (best != nullptr && credit > 0) {
      const int64_t bytes = best->transfer.elements() * static_cast<int64_t>(sizeof(float));
      best->is_issued = true;
      plan.transfers.push_back(best->transfer);
      link_free = std::max(now, link_free) + cost.interpolated(bytes);
      under_way.push_back({link_free, bytes});
      credit -= bytes;
      continue;
    }
    now = next_event;
    while (!under_way.empty() && under_way.front().end_s <= now) {
      credit += under_way.front().bytes;
      under_way.pop_front();
    }
  }
  if (servers > 0) {
    place_on_servers(plan, servers);
    plan.max_in_flight = partitions_in_flight(credit_bytes, partition_bytes);
  }
  return plan;
}

Plan best_plan(const Profile& profile, const Links& links, int ranks, int servers, const StrategyOptions& options) {
  if (options.partition_bytes > 0) {
    const int64_t usual = options.partition_bytes * (servers > 0 ? kUsuallyUnderWay : 1);
    return scheduled_plan(profile, links, ranks, servers, options.partition_bytes,
                          options.credit_bytes > 0 ? options.credit_bytes : usual);
  }
  // Search: the partition and credit under which the model predicts the shortest step; on a tie the larger partition.
  Plan best;
  double best_s = std::numeric_limits<double>::infinity();
  for (int64_t partition = 64 << 20; partition >= 256 << 10; partition /= 2)
    for (const int64_t partitions_in_flight : {1, 2, 4}) {
      Plan plan = scheduled_plan(profile, links, ranks, servers, partition, partition * partitions_in_flight);
      const double seconds = predict_step(plan, profile, links).step_s;
      if (seconds < best_s * (1 - 1e-6)) {
        best_s = seconds;
        best = std::move(plan);
      }
    }
  return best;
}

}  // namespace

Plan make_bytescheduler_plan(const Profile& profile, const Links& links, int ranks, const StrategyOptions& options) {
  return best_plan(profile, links, ranks, 0, options);
}

Plan make_bytescheduler_ps_plan(const Profile& profile, const Links& links, int ranks, const StrategyOptions& options) {
  return best_plan(profile, links, ranks, options.servers > 0 ? options.servers : ranks, options);
}

Strategy bytescheduler_strategy() {
  Strategy bytescheduler{"bytescheduler",
                         "partitions, the next forward's first layers first; each layer's forward waits for its own",
                         make_bytescheduler_plan};
  bytescheduler.sizes = {"partition-mb", "credit-mb"};
  bytescheduler.uses_links = true;
  bytescheduler.sizes_to_plan = partitions_to_plan;
  bytescheduler.sizes_to_try = partitions_to_try;
  return bytescheduler;
}

}  // namespace tutti
