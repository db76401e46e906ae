#include <fmt/format.h>

#include <algorithm>
#include <cmath>
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
  std::vector<std::string> left_out = {"ranks"};
  if (!with_nodes) left_out.emplace_back("nodes");
  const std::vector<ConfigColumn> settings =
      config_columns(configs, {"model", "batch", "network", "strategy"}, left_out);
  const std::string what = rank_word(configs);
  table.columns.push_back({"source", "source"});
  for (const ConfigColumn& setting : settings) table.columns.push_back(setting.column);
  table.columns.push_back({"baseline", "1 " + what.substr(0, what.size() - 1) + ", baseline", "number", 1});
  for (const int ranks : rank_counts)
    table.columns.push_back({fmt::format("ranks_{}", ranks),
                             fmt::format("{} {}", ranks, ranks == 1 ? what.substr(0, what.size() - 1) : what),
                             "plusminus", 2});
  for (const int ranks : rank_counts)
    if (ranks > 1)
      table.columns.push_back({fmt::format("efficiency_{}", ranks), fmt::format("eff. {}", ranks), "percent", 1});
  for (const Line& line : lines) {
    TableRow row;
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

Table statistics_table(const std::vector<Group>& groups) {
  Table table{"statistics", "What the figures rest on", "", {}, {}};
  std::vector<const Configuration*> configs;
  for (const Group& group : groups)
    if (group.rate.n > 0) configs.push_back(&group.config);
  if (configs.empty()) return table;
  const std::vector<ConfigColumn> settings =
      config_columns(configs, {"model", "batch", "network", "strategy", "ranks"}, {});
  table.columns.push_back({"source", "source"});
  for (const ConfigColumn& setting : settings) table.columns.push_back(setting.column);
  for (TableColumn column :
       {TableColumn{"runs", "runs", "number", 0}, TableColumn{"basis", "spread over", "text", 0},
        TableColumn{"median", "median", "number", 2}, TableColumn{"mean", "mean", "number", 2},
        TableColumn{"deviation", "deviation", "number", 2}, TableColumn{"low", "95 % from", "number", 2},
        TableColumn{"high", "to", "number", 2}, TableColumn{"speedup", "speed-up", "number", 2},
        TableColumn{"steps", "steps used", "number", 0}, TableColumn{"dropped", "warm-up dropped", "number", 0}})
    table.columns.push_back(std::move(column));
  for (const Group& group : groups) {
    if (group.rate.n == 0) continue;
    TableRow row;
    row.values.push_back(text_value(word(group.source)));
    for (const ConfigColumn& setting : settings) row.values.push_back(setting.value(group.config));
    const double half = group.rate.half_width();
    row.values.push_back(whole_value(static_cast<int64_t>(group.cells.size()), 0));
    row.values.push_back(text_value(group.basis));
    row.values.push_back(number_value(group.rate.median, 2));
    row.values.push_back(number_value(group.rate.mean, 2));
    row.values.push_back(number_value(group.deviation(), 2));
    row.values.push_back(std::isfinite(half) ? number_value(group.rate.mean - half, 2) : TableValue());
    row.values.push_back(std::isfinite(half) ? number_value(group.rate.mean + half, 2) : TableValue());
    row.values.push_back(number_value(group.speedup, 2));
    row.values.push_back(group.steps > 0 ? whole_value(static_cast<int64_t>(group.steps), -1) : TableValue());
    row.values.push_back(group.steps > 0 ? whole_value(static_cast<int64_t>(group.dropped), -1) : TableValue());
    table.rows.push_back(std::move(row));
  }
  table.caption =
      "Samples/s. The interval is Student's: over repeats; over tenths of the run where there is one, which says "
      "nothing "
      "of how runs differ; from the deviation alone where that is what a text states. Warm-up is what was declared, or "
      "what the MSER rule finds if that is more.";
  return table;
}

Table failures_table(const std::vector<Cell>& cells) {
  Table table{"failures", "Failed cells", "", {}, {}};
  for (const Cell& cell : cells) {
    if (!cell.is_failed) continue;
    std::string reason = cell.error.substr(0, cell.error.find('\n'));
    table.rows.push_back({{text_value(cell.id), text_value(describe(cell.config)), whole_value(cell.repeat, 0),
                           text_value(reason.empty() ? "no reason was recorded" : reason)},
                          false});
  }
  if (!table.rows.empty())
    table.columns = {{"cell", "cell"}, {"config", "configuration"}, {"repeat", "repeat", "number"}, {"error", "error"}};
  return table;
}

}  // namespace tutti
