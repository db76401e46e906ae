#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "report/config_columns.h"
#include "report/table_forms.h"

namespace tutti {
namespace {

/// What a row has in common: all but the number of ranks, and of nodes unless one number of ranks has several.
std::string row_key(const Group& group, bool with_nodes) {
  Configuration config = group.config;
  config.ranks = 0;
  if (!with_nodes) config.nodes = 0;
  return fmt::format("{}\x1f{}", word(group.source), key_of(config));
}

bool nodes_matter(const std::vector<Group>& groups) {
  std::unordered_map<std::string, int> nodes;
  for (const Group& group : groups) {
    if (group.rate.n == 0) continue;
    const std::string key = fmt::format("{}\x1f{}", row_key(group, false), group.config.ranks);
    if (const auto [place, is_new] = nodes.emplace(key, group.config.nodes);
        !is_new && place->second != group.config.nodes)
      return true;
  }
  return false;
}

}  // namespace

Table strategies_table(const std::vector<Group>& groups) {
  Table table{"strategies", "Samples/s by model, network, strategy and number of ranks", "", {}, {}};
  struct Line {
    const Group* first;
    std::map<int, const Group*> by_ranks;
  };
  const bool with_nodes = nodes_matter(groups);
  const bool has_others = std::any_of(groups.begin(), groups.end(),
                                      [](const Group& group) { return group.rate.n > 0 && !group.is_baseline; });
  std::vector<Line> lines;
  std::unordered_map<std::string, std::size_t> places;
  std::set<int> rank_counts;
  std::vector<const Configuration*> configs;
  for (const Group& group : groups) {
    if (group.rate.n == 0) continue;
    // One rank that others are measured against is their column, not a line of its own, unless there are no others.
    if (group.is_baseline && group.config.ranks == 1 && has_others) continue;
    const auto [place, is_new] = places.emplace(row_key(group, with_nodes), lines.size());
    if (is_new) lines.push_back({&group, {}});
    lines[place->second].by_ranks[group.config.ranks] = &group;
    rank_counts.insert(group.config.ranks);
    configs.push_back(&group.config);
  }
  if (configs.empty()) return table;
  using Keys = std::vector<std::string>;
  const Keys left_out = with_nodes ? Keys{"ranks"} : Keys{"ranks", "nodes"};
  const std::vector<ConfigColumn> settings =
      config_columns(configs, {"model", "batch", "network", "strategy"}, left_out);
  const std::string what = rank_word(configs);
  const bool has_names =
      std::any_of(groups.begin(), groups.end(), [](const Group& group) { return !run_names(group.cells).empty(); });
  if (has_names) table.columns.push_back(as_setting({"run", "run"}));
  table.columns.push_back(as_setting({"source", "source"}));
  for (const ConfigColumn& setting : settings) table.columns.push_back(setting.column);
  table.columns.push_back({"baseline", "1 " + what.substr(0, what.size() - 1) + ", baseline", "number", 1});
  for (const int ranks : rank_counts)
    table.columns.push_back(
        as_answer({fmt::format("ranks_{}", ranks),
                   fmt::format("{} {}", ranks, ranks == 1 ? what.substr(0, what.size() - 1) : what), "plusminus", 2}));
  for (const int ranks : rank_counts)
    if (ranks > 1)
      table.columns.push_back(
          as_answer({fmt::format("efficiency_{}", ranks), fmt::format("eff. {}", ranks), "percent", 1}));
  for (const Line& line : lines) {
    TableRow row;
    if (has_names) {
      std::vector<const Cell*> cells;
      for (const auto& [ranks, group] : line.by_ranks)
        cells.insert(cells.end(), group->cells.begin(), group->cells.end());
      row.values.push_back(text_value(run_names(cells)));
    }
    row.values.push_back(text_value(word(line.first->source)));
    for (const ConfigColumn& setting : settings) row.values.push_back(setting.value(line.first->config));
    row.values.push_back(number_value(line.first->baseline_rate, 1));
    for (const int ranks : rank_counts) {
      const auto group = line.by_ranks.find(ranks);
      row.values.push_back(group == line.by_ranks.end()
                               ? TableValue()
                               : plusminus_value(group->second->rate.mean, group->second->deviation(), 2));
    }
    for (const int ranks : rank_counts)
      if (ranks > 1) {
        const auto group = line.by_ranks.find(ranks);
        row.values.push_back(group == line.by_ranks.end() ? TableValue() : percent_value(group->second->efficiency));
      }
    table.rows.push_back(std::move(row));
  }
  table.caption = fmt::format(
      "Mean ± standard deviation: over repeats; over tenths of the run where there is one; of published rows as "
      "stated. "
      "Efficiency: samples/s over {} × the baseline.",
      what);
  return table;
}

}  // namespace tutti
