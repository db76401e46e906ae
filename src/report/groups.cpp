#include "report/groups.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>

namespace tutti {
namespace {

void estimate_rate(Group& group) {
  std::vector<double> means;
  CellRate last;
  for (const Cell* cell : group.cells) {
    CellRate rate = rate_of(*cell);
    if (rate.rate.n == 0) continue;
    group.steps += rate.steps;
    group.dropped += rate.dropped;
    means.push_back(rate.rate.mean);
    last = rate;
  }
  if (means.size() == 1) {
    group.rate = last.rate;
    group.basis = last.is_stated ? "stated" : "steps";
  } else if (!means.empty()) {
    group.rate = estimate(means);
    group.basis = "repeats";
  }
}

bool ran_on(const Group& baseline, const std::string& node) {
  return std::any_of(baseline.cells.begin(), baseline.cells.end(),
                     [&node](const Cell* cell) { return cell->nodes.size() == 1 && cell->nodes[0].name == node; });
}

int likeness(const Configuration& a, const Configuration& b) {
  return (a.network == b.network) + (a.strategy == b.strategy) + (a.transport == b.transport) + (a.wire == b.wire) +
         (a.device == b.device) + 2 * (a.workers == b.workers) + 2 * (a.further() == b.further());
}

/// The mean rate of the likest of some baselines.
double rate_of_likest(const std::vector<const Group*>& baselines, const Configuration& config) {
  int best = -1;
  double sum = 0, count = 0;
  for (const Group* baseline : baselines) {
    const int like = likeness(baseline->config, config);
    if (like < best) continue;
    if (like > best) sum = count = 0;
    best = like;
    sum += baseline->rate.mean;
    ++count;
  }
  return sum / count;
}

std::optional<double> baseline_rate(const Group& group, const std::vector<const Group*>& baselines) {
  if (baselines.empty()) return std::nullopt;
  std::optional<double> slowest;
  if (!group.cells.empty())
    for (const NodeShare& node : group.cells.front()->nodes) {
      std::vector<const Group*> own;
      std::copy_if(baselines.begin(), baselines.end(), std::back_inserter(own),
                   [&node](const Group* baseline) { return ran_on(*baseline, node.name); });
      if (own.empty()) continue;
      const double rate = rate_of_likest(own, group.config);
      slowest = slowest ? std::min(*slowest, rate) : rate;
    }
  return slowest ? slowest : rate_of_likest(baselines, group.config);
}

/// What a baseline shares with the cells that are measured against it.
std::string baseline_key(const Group& group) {
  const Configuration& config = group.config;
  return fmt::format("{}\x1f{}\x1f{}\x1f{}\x1f{}", word(group.source), config.model, config.data, config.batch,
                     config.precision);
}

void find_baselines(std::vector<Group>& groups) {
  std::unordered_map<std::string, std::vector<const Group*>> declared, single;
  for (const Group& group : groups) {
    if (group.rate.n == 0) continue;
    if (group.is_baseline) declared[baseline_key(group)].push_back(&group);
    if (group.config.ranks == 1) single[baseline_key(group)].push_back(&group);
  }
  for (Group& group : groups) {
    if (group.rate.n == 0) continue;
    const std::string key = baseline_key(group);
    group.baseline_rate = baseline_rate(group, declared.count(key) > 0 ? declared[key] : single[key]);
    if (!group.baseline_rate || !(*group.baseline_rate > 0)) continue;
    group.speedup = group.rate.mean / *group.baseline_rate;
    if (group.config.ranks > 0) group.efficiency = *group.speedup / group.config.ranks;
  }
}

}  // namespace

std::optional<double> Group::deviation() const {
  if (rate.n == 0 || (rate.n == 1 && !std::isfinite(rate.standard_error))) return std::nullopt;
  return rate.deviation;
}

std::string run_names(const std::vector<const Cell*>& cells) {
  constexpr std::size_t kMostNames = 3;
  std::vector<std::string> names;
  for (const Cell* cell : cells)
    if (!cell->run.empty()) names.push_back(cell->run + (cell->is_running ? " (running)" : ""));
  if (names.size() > kMostNames) return fmt::format("{} … {} ({} runs)", names.front(), names.back(), names.size());
  return fmt::format("{}", fmt::join(names, ", "));
}

std::vector<Group> group_cells(const std::vector<Cell>& cells) {
  std::vector<Group> groups;
  std::unordered_map<std::string, std::size_t> places;
  for (const Cell& cell : cells) {
    if (cell.is_failed || cell.stated.is_average) continue;
    const auto [place, is_new] =
        places.emplace(fmt::format("{}\x1f{}", word(cell.source), key_of(cell.config)), groups.size());
    if (is_new) {
      groups.emplace_back();
      groups.back().source = cell.source;
      groups.back().config = cell.config;
    }
    Group& group = groups[place->second];
    group.cells.push_back(&cell);
    group.is_baseline = group.is_baseline || cell.is_baseline;
  }
  for (Group& group : groups) estimate_rate(group);
  find_baselines(groups);
  return groups;
}

}  // namespace tutti
