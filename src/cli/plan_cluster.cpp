#include "cli/plan_cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "cli/json_output.h"
#include "record/cell.h"
#include "record/record_file.h"
#include "report/chrome_trace.h"
#include "sim/planner.h"
#include "tutti/error.h"
#include "tutti/optimizer.h"

namespace tutti {
namespace {

void print_table(const std::vector<PlannedStrategy>& planned, int ranks, const std::string& best) {
  fmt::print("\n{} rank{}\n  {:<18} {:>10} {:>11} {:>11} {:>11} {:>10}  {}\n", ranks, ranks == 1 ? "" : "s", "strategy",
             "transfers", "step", "samples/s", "efficiency", "exposed", "sizes");
  for (const PlannedStrategy& one : planned)
    fmt::print("{} {:<18} {:>10} {:>11} {:>11.1f} {:>11} {:>10}  {}\n", one.name == best ? "*" : " ", one.name,
               one.plan.transfers.size(), fmt::format("{:.2f} ms", one.step.step_s * 1e3), one.samples_per_s,
               fmt::format("{:.1f} %", one.efficiency * 100), fmt::format("{:.2f} ms", one.step.exposed_s * 1e3),
               one.settings);
}

/// Cell records as `tutti bench` writes them, marked as simulated.
std::string records_of(const std::vector<PlannedStrategy>& planned, const ClusterPlanArguments& arguments,
                       const Cluster& cluster, int ranks) {
  std::string lines;
  for (const PlannedStrategy& one : planned) {
    Cell cell;
    cell.source = Source::simulated;
    cell.sweep = "plan";
    cell.config.model = arguments.model;
    cell.config.batch = static_cast<int64_t>(arguments.batch);
    cell.config.strategy = one.name;
    cell.config.network = cluster.name;
    cell.config.ranks = ranks;
    cell.config.nodes = lay_out(cluster, ranks).nodes;
    cell.config.servers = one.plan.servers;
    cell.samples_per_step = static_cast<double>(arguments.batch * arguments.accumulate * ranks);
    cell.throughput = {one.samples_per_s, 0.0};
    cell.parts = StepParts{one.step.compute_s, 0, 0, {{"transfers", one.step.exposed_s}}};
    lines += record_line(Cell::kKind, cell) + "\n";
  }
  return lines;
}

/// Throws UsageError for what no plan can be made of.
void check(const ClusterPlanArguments& arguments) {
  constexpr double kLargestBatch = 1e9;
  constexpr int kMostNodes = 100'000;
  if (!(arguments.batch >= 1 && arguments.batch <= kLargestBatch))
    throw UsageError("--batch {}: at least one sample per rank is needed", arguments.batch);
  if (arguments.accumulate < 1)
    throw UsageError("--accumulate {}: at least one micro-batch per step is needed", arguments.accumulate);
  if (arguments.tokens < 0) throw UsageError("--tokens {}: texts have at least one token", arguments.tokens);
  if (arguments.nodes < 0 || arguments.nodes > kMostNodes)
    throw UsageError("--nodes {}: 1 to {} can be planned", arguments.nodes, kMostNodes);
  if (arguments.servers < 0) throw UsageError("--servers {}: at least one is needed", arguments.servers);
  if (!(arguments.efficiency_bound > 0 && arguments.efficiency_bound <= 1))
    throw UsageError("--below {}: an efficiency is above 0 and at most 1 (0.8 for 80 %)", arguments.efficiency_bound);
  find_optimizer(arguments.optimizer);  // throws for an unknown one
}

/// What was asked for, smallest first; else powers of two up to all devices. The cluster has to have them all: better
/// said before the first table than after it.
std::vector<int> sizes_of(const ClusterPlanArguments& arguments, const Cluster& cluster) {
  std::vector<int> sizes = arguments.sizes;
  if (sizes.empty())
    for (int64_t ranks = 1; ranks <= cluster.devices(); ranks *= 2) sizes.push_back(static_cast<int>(ranks));
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  if (sizes.front() < 1) throw UsageError("--gpus {}: at least one is needed", sizes.front());
  lay_out(cluster, sizes.back());
  return sizes;
}

/// More ranks than were measured: more machines like them, or more ranks in the one that there was. Says so.
std::string grow(Cluster& cluster, const ClusterPlanArguments& arguments) {
  const int most = arguments.sizes.empty() ? 0 : *std::max_element(arguments.sizes.begin(), arguments.sizes.end());
  const int measured = cluster.devices();
  if (!cluster.is_from_links || arguments.nodes > 0 || most <= measured) return "";
  NodeGroup& nodes = cluster.groups.back();
  if (nodes.count == 1) {
    nodes.devices = most;
    return fmt::format("{} ranks in one machine like the one where {} were measured\n", most, measured);
  }
  nodes.count = (most + nodes.devices - 1) / nodes.devices;
  return fmt::format("{} machines with links like those of the {} ranks that were measured\n", nodes.count, measured);
}

Workload workload_of(const ClusterPlanArguments& arguments) {
  Workload workload;
  workload.model = arguments.model;
  workload.batch = arguments.batch;
  workload.accumulate = arguments.accumulate;
  workload.optimizer = arguments.optimizer;
  workload.measured = arguments.measured;
  if (arguments.measured.gradients.empty()) {
    ShapeOptions options;
    options.tokens = arguments.tokens;
    workload.shape = model_shape(arguments.model, options);
  }
  return workload;
}

void print_advice(const Workload& workload, const Cluster& cluster, const PlannedStrategy& best, int ranks,
                  const ClusterPlanArguments& arguments) {
  fmt::print("\n{}", reasons(best, cluster, ranks));
  if (ranks == 1) return;
  const int small = size_below(workload, cluster, arguments.efficiency_bound, arguments.servers);
  if (small > 0)
    fmt::print("Efficiency falls under {:.0f} % at {} ranks (best strategy, powers of two).\n",
               arguments.efficiency_bound * 100, small);
  else
    fmt::print("Efficiency stays above {:.0f} % up to all {} ranks.\n", arguments.efficiency_bound * 100,
               cluster.devices());
  if (lay_out(cluster, ranks).nodes > 1)
    fmt::print("Parameter servers: {} are enough; more gain less than 2 %.\n",
               servers_needed(workload, cluster, ranks));
  fmt::print("\nWhat if, at {} ranks (now {:.1f} samples/s):\n", ranks, best.samples_per_s);
  for (const WhatIf& change : what_ifs(workload, cluster, ranks, arguments.servers))
    fmt::print("  {:<30} {:>11.1f} samples/s ({:+.1f} %), {} {}\n", change.change, change.samples_per_s,
               (change.samples_per_s / best.samples_per_s - 1) * 100, change.best.name, change.best.settings);
}

nlohmann::json strategies_json(const std::vector<PlannedStrategy>& planned) {
  nlohmann::json all = nlohmann::json::array();
  for (const PlannedStrategy& one : planned) all.push_back(to_json(one));
  return all;
}

/// What print_advice() says.
nlohmann::json advice_json(const Workload& workload, const Cluster& cluster, int ranks,
                           const ClusterPlanArguments& arguments) {
  if (ranks == 1) return {};
  nlohmann::json changes = nlohmann::json::array();
  for (const WhatIf& change : what_ifs(workload, cluster, ranks, arguments.servers))
    changes.push_back({{"change", change.change},
                       {"samples_per_s", change.samples_per_s},
                       {"strategy", change.best.name},
                       {"settings", change.best.settings}});
  const int small = size_below(workload, cluster, arguments.efficiency_bound, arguments.servers);
  return {
      {"ranks", ranks},
      {"efficiency_bound", arguments.efficiency_bound},
      {"ranks_below_bound", small > 0 ? nlohmann::json(small) : nlohmann::json()},
      {"servers_needed",
       lay_out(cluster, ranks).nodes > 1 ? nlohmann::json(servers_needed(workload, cluster, ranks)) : nlohmann::json()},
      {"what_if", changes}};
}

}  // namespace

int plan_cluster(const ClusterPlanArguments& arguments) {
  if (arguments.cluster == "list") {
    nlohmann::json all = nlohmann::json::array();
    for (const std::string& name : shipped_clusters()) {
      all.push_back({{"name", name}, {"about", load_cluster(name).about}});
      if (!arguments.as_json) fmt::print("{:<14} {}\n", name, load_cluster(name).about);
    }
    if (arguments.as_json) print_json(all);
    return 0;
  }
  check(arguments);
  Cluster cluster = load_cluster(arguments.cluster);
  if (arguments.nodes > 0) cluster.groups.back().count = arguments.nodes;
  const std::string assumed = grow(cluster, arguments);
  const Workload workload = workload_of(arguments);
  const std::vector<int> sizes = sizes_of(arguments, cluster);

  if (!arguments.as_json) {
    fmt::print("{}: {}\n{}, batch {:g} per rank{}, {}; simulated, not measured\n", cluster.name, cluster.about,
               arguments.model, arguments.batch,
               arguments.accumulate > 1 ? fmt::format(" × {} micro-batches", arguments.accumulate) : "",
               arguments.optimizer);
    fmt::print("{}", assumed);
  }
  std::string records;
  std::vector<PlannedStrategy> planned;
  nlohmann::json sizes_json = nlohmann::json::array();
  for (const int ranks : sizes) {
    planned = plan_all(workload, cluster, ranks, arguments.servers);
    if (arguments.as_json)
      sizes_json.push_back(
          {{"ranks", ranks}, {"best", best_of(planned).name}, {"strategies", strategies_json(planned)}});
    else
      print_table(planned, ranks, best_of(planned).name);
    if (!arguments.records.empty()) records += records_of(planned, arguments, cluster, ranks);
  }
  const PlannedStrategy& best = best_of(planned);
  if (arguments.as_json) {
    nlohmann::json all = {{"cluster", cluster.name},
                          {"about", cluster.about},
                          {"model", arguments.model},
                          {"batch", arguments.batch},
                          {"accumulate", arguments.accumulate},
                          {"optimizer", arguments.optimizer},
                          {"is_simulated", true},
                          {"sizes", sizes_json}};
    if (!arguments.brief) all["advice"] = advice_json(workload, cluster, sizes.back(), arguments);
    print_json(all);
  } else {
    fmt::print("\n{}", kBestMeans);
    if (!arguments.brief) print_advice(workload, cluster, best, sizes.back(), arguments);
  }
  if (!arguments.records.empty()) write_file_atomically(arguments.records, records);
  if (!arguments.trace.empty()) {
    const PlannedStrategy traced = plan_strategy(workload, cluster, sizes.back(), best.name, best.options, true);
    write_file_atomically(arguments.trace, chrome_trace({traced.step.trace}, traced.plan));
    if (!arguments.as_json)
      fmt::print("Predicted timeline of {} at {} ranks: {} (open it at https://ui.perfetto.dev)\n", best.name,
                 sizes.back(), arguments.trace);
  }
  return 0;
}

nlohmann::json to_json(const PlannedStrategy& planned) {
  return {{"strategy", planned.name},
          {"settings", planned.settings},
          {"transfers", planned.plan.transfers.size()},
          {"servers", planned.plan.servers},
          {"step_s", planned.step.step_s},
          {"compute_s", planned.step.compute_s},
          {"exposed_s", planned.step.exposed_s},
          {"samples_per_s", planned.samples_per_s},
          {"efficiency", planned.efficiency}};
}

}  // namespace tutti
