#include "sim/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/files.h"
#include "base/median.h"
#include "sim/calibration.h"
#include "sim/message_cost.h"
#include "tutti/error.h"

namespace tutti {
namespace {

/// Micro-batches before the last one only lengthen what precedes the last backward.
Profile with_accumulation(Profile profile, int micro_batches) {
  profile.forward_s += (micro_batches - 1) * (profile.forward_s + profile.backward_s);
  return profile;
}

std::vector<Profile> profiles_of(const Workload& workload, const Layout& layout) {
  std::vector<Profile> profiles;
  if (!workload.measured.gradients.empty()) return {with_accumulation(workload.measured, workload.accumulate)};
  for (const Device& device : layout.devices)
    profiles.push_back(with_accumulation(compute_profile(workload.shape, device, workload.batch), workload.accumulate));
  return profiles;
}

double update_alone_s(const Workload& workload, const Cluster& cluster, const Layout& layout) {
  const std::vector<Profile> profiles = profiles_of(workload, layout);
  Layout one = layout;
  one.ranks = one.nodes = one.per_node = 1;
  const Plan plan = make_bsp_plan(profiles.front(), {}, 1, {});
  return simulate(plan, {profiles.front()}, cluster, one, {workload.optimizer, false}).step_s;
}

}  // namespace

double single_rate(const Workload& workload, const Cluster& cluster) {
  return workload.batch * workload.accumulate / update_alone_s(workload, cluster, lay_out(cluster, 1));
}

PlannedStrategy plan_strategy(const Workload& workload, const Cluster& cluster, int ranks, const std::string& strategy,
                              const StrategyOptions& options, bool traces) {
  const Layout layout = lay_out(cluster, ranks);
  const std::vector<Profile> profiles = profiles_of(workload, layout);
  const Strategy& found = find_strategy(strategy);
  PlannedStrategy planned;
  planned.name = strategy;
  planned.options = options;
  if (found.uses_servers && planned.options.servers == 0) planned.options.servers = layout.nodes;
  const Links links = links_of(cluster, layout, found.uses_servers ? planned.options.servers : 0);
  planned.settings = describe_sizes(found, planned.options);
  planned.plan = found.make_plan(profiles.front(), links, ranks, planned.options);
  planned.step = simulate(planned.plan, profiles, cluster, layout, {workload.optimizer, traces});
  planned.samples_per_s = ranks * workload.batch * workload.accumulate / planned.step.step_s;
  planned.efficiency = planned.samples_per_s / (ranks * single_rate(workload, cluster));
  return planned;
}

std::vector<PlannedStrategy> plan_all(const Workload& workload, const Cluster& cluster, int ranks, int servers) {
  std::vector<PlannedStrategy> planned;
  for (const Strategy& strategy : strategies()) {
    if (ranks == 1 && strategy.uses_servers) continue;
    StrategyOptions given;
    given.servers = servers;
    std::vector<PlannedStrategy> tried;
    const bool has_sizes = strategy.sizes_to_plan != nullptr;
    for (const StrategyOptions& options : has_sizes ? strategy.sizes_to_plan(given) : std::vector{given})
      tried.push_back(plan_strategy(workload, cluster, ranks, strategy.name, options));
    planned.push_back(*std::min_element(tried.begin(), tried.end(), [](const auto& a, const auto& b) {
      return a.step.step_s < b.step.step_s * (1 - 1e-9);
    }));
  }
  return planned;
}

const PlannedStrategy& best_of(const std::vector<PlannedStrategy>& planned) { return best_of(planned, {}); }

const PlannedStrategy& best_of(const std::vector<PlannedStrategy>& planned,
                               const std::vector<std::optional<double>>& measured_s) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < measured_s.size(); ++i)
    if (measured_s[i] && planned[i].step.step_s > 0) ratios.push_back(*measured_s[i] / planned[i].step.step_s);
  const double usual = ratios.empty() ? 1 : median(ratios);
  std::size_t best = 0;
  double best_s = 0;
  for (std::size_t i = 0; i < planned.size(); ++i) {
    const bool is_measured = i < measured_s.size() && measured_s[i];
    const double step_s = is_measured ? *measured_s[i] : planned[i].step.step_s * usual;
    const double asked_s = step_s * (find_strategy(planned[i].name).uses_servers ? 1 + kTellsApart : 1);
    if (i > 0 && asked_s >= best_s * (1 - 1e-9)) continue;
    best = i;
    best_s = asked_s;
  }
  return planned[best];
}

int servers_needed(const Workload& workload, const Cluster& cluster, int ranks) {
  const Layout layout = lay_out(cluster, ranks);
  const Strategy& pushing =
      first_strategy([](const Strategy& one) { return one.uses_servers && one.overlaps_backward; });
  const auto step_s = [&](int servers) {
    StrategyOptions options;
    options.servers = servers;
    options.credit_bytes = 64 * options.partition_bytes;  // as many under way as the engine allows
    return plan_strategy(workload, cluster, ranks, pushing.name, options).step.step_s;
  };
  const double enough_s = step_s(2 * layout.nodes) * (1 + kTellsApart);
  int servers = 1;
  while (servers < 2 * layout.nodes && step_s(servers) > enough_s) servers *= 2;
  return std::min(servers, 2 * layout.nodes);
}

int size_below(const Workload& workload, const Cluster& cluster, double bound, int servers) {
  for (int ranks = 2; ranks <= cluster.devices(); ranks *= 2)
    if (best_of(plan_all(workload, cluster, ranks, servers)).efficiency < bound) return ranks;
  return 0;
}

std::string reasons(const PlannedStrategy& best, const Cluster& cluster, int ranks) {
  const SimulatedStep& step = best.step;
  const double exposed = step.exposed_s / step.step_s;
  const double bytes = static_cast<double>(best.plan.elements) * sizeof(float);
  std::string text = fmt::format("At {} ranks: --strategy {} {}\n", ranks, best.name, best.settings);
  text += fmt::format("{} of gradients in {} transfers; {:.1f} ms of computation, transfers under way for {:.1f} ms.\n",
                      readable_bytes(static_cast<uint64_t>(bytes)), best.plan.transfers.size(), step.compute_s * 1e3,
                      step.busy_s * 1e3);
  if (exposed < 0.03) {
    text += "Computation bounds it: nearly all communication hides behind it.\n";
    return text;
  }
  const auto busiest = std::max_element(step.resource_s.begin(), step.resource_s.end()) - step.resource_s.begin();
  const char* const names[] = {"agreeing on the next transfer", "the ring of all ranks",   "links inside the node",
                               "links inside the node",         "the node's network card", "the node's network card"};
  const std::string where = cluster.measured          ? "the links as they were measured"
                            : busiest >= kFirstServer ? "a parameter server"
                                                      : names[busiest];
  const double busiest_s = step.resource_s[static_cast<std::size_t>(busiest)];
  const Layout layout = lay_out(cluster, ranks);
  text += fmt::format(
      "{:.0f} % of the step is exposed communication. The busiest part of the way is {}: {:.1f} ms of "
      "a step of {:.1f} ms.\n",
      exposed * 100, where, busiest_s * 1e3, step.step_s * 1e3);
  double startups_s = 0;
  for (const Transfer& transfer : best.plan.transfers) {
    Transfer nothing;
    nothing.operation = transfer.operation;
    startups_s += seconds_alone(nothing, best.plan, cluster, layout);
  }
  if (best.plan.servers == 0)
    text += startups_s > 0.5 * busiest_s
                ? fmt::format("Start-ups bound it: {} of them at {:.0f} µs; larger messages or fewer ranks help.\n",
                              best.plan.transfers.size(),
                              startups_s / static_cast<double>(best.plan.transfers.size()) * 1e6)
                : fmt::format("Bandwidth bounds it: start-ups are {:.1f} ms of that.\n", startups_s * 1e3);
  return text;
}

std::vector<WhatIf> what_ifs(const Workload& workload, const Cluster& cluster, int ranks, int servers) {
  std::vector<WhatIf> list;
  const auto add = [&](const std::string& change, const Workload& work, const Cluster& where) {
    PlannedStrategy best = best_of(plan_all(work, where, ranks, servers));
    const double rate = best.samples_per_s;
    list.push_back({change, std::move(best), rate});
  };
  for (const double factor : {2.0, 4.0}) {
    Cluster faster = cluster;
    faster.network.bytes_per_s *= factor;
    faster.network.connection_bytes_per_s *= factor;
    add(fmt::format("a network {:g} times as fast", factor), workload, faster);
  }
  Cluster quicker = cluster;
  quicker.network.startup_s /= 2;
  quicker.inside.startup_s /= 2;
  add("half the start-up times", workload, quicker);
  if (workload.measured.gradients.empty()) {
    Workload larger = workload;
    larger.batch *= 2;
    add(fmt::format("batch {:g} per rank", larger.batch), larger, cluster);
  }
  Workload accumulated = workload;
  accumulated.accumulate *= 4;
  add(fmt::format("{} micro-batches per step", accumulated.accumulate), accumulated, cluster);
  return list;
}

}  // namespace tutti
