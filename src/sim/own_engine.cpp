#include "sim/own_engine.h"

#include <algorithm>

namespace tutti {
namespace {

bool sends_the_same(const Plan& a, const Plan& b) {
  return a.barrier == b.barrier && a.sharded_optimizer == b.sharded_optimizer && a.max_in_flight == b.max_in_flight &&
         a.transfers == b.transfers;
}

}  // namespace

Software engine_software() {
  Software software;
  software.updates_take_turns = true;
  return software;
}

Cluster cluster_of_run(const Links& links, int ranks, const Software& software) {
  Cluster cluster;
  cluster.name = "as measured";
  cluster.groups = {{1, ranks, {}}};
  cluster.software = software;
  cluster.measured = links;
  return cluster;
}

SimulatedStep simulate_run(const Plan& plan, const Profile& profile, const Cluster& cluster) {
  return simulate(plan, {profile}, cluster, lay_out(cluster, plan.ranks));
}

PlannedStrategy plan_run(const Strategy& strategy, const StrategyOptions& options, const Profile& profile,
                         const Links& links, int ranks, const CandidateRules& rules) {
  PlannedStrategy planned;
  planned.name = strategy.name;
  planned.options = options;
  planned.settings = describe_sizes(strategy, options);
  planned.plan = strategy.make_plan(profile, links, ranks, options);
  if (rules.adapt) rules.adapt(planned.plan);
  planned.step = simulate_run(planned.plan, profile, cluster_of_run(links, ranks));
  return planned;
}

std::vector<PlannedStrategy> plan_run(const Profile& profile, const Links& links, int ranks,
                                      const CandidateRules& rules) {
  const int64_t all_bytes = empty_plan(profile, "", ranks).elements * static_cast<int64_t>(sizeof(float));
  std::vector<PlannedStrategy> found;
  for (const Strategy& strategy : strategies()) {
    if (!rules.allows(strategy)) continue;
    StrategyOptions given;
    given.servers = rules.servers;
    PlannedStrategy best;
    const bool has_sizes = strategy.sizes_to_try != nullptr;
    for (const StrategyOptions& options : has_sizes ? strategy.sizes_to_try(given, all_bytes) : std::vector{given}) {
      PlannedStrategy one = plan_run(strategy, options, profile, links, ranks, rules);
      if (best.name.empty() || one.step.step_s < best.step.step_s) best = std::move(one);
    }
    found.push_back(std::move(best));
  }
  return found;
}

std::vector<PlannedStrategy> find_candidates(const Profile& profile, const Links& links, int ranks,
                                             const CandidateRules& rules, std::size_t most) {
  std::vector<PlannedStrategy> found = plan_run(profile, links, ranks, rules);
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.step.step_s < b.step.step_s; });
  std::vector<PlannedStrategy> different;
  for (PlannedStrategy& one : found) {
    const bool is_known = std::any_of(different.begin(), different.end(),
                                      [&](const auto& other) { return sends_the_same(one.plan, other.plan); });
    // Overlap takes processor time, which no simulation of links knows of: where it is short, nothing beats bsp.
    const Strategy& strategy = find_strategy(one.name);
    const bool is_safe = !strategy.overlaps_backward && !strategy.uses_servers;
    if (!is_known && (is_safe || different.size() < most)) different.push_back(std::move(one));
  }
  return different;
}

}  // namespace tutti
