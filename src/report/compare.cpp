#include "report/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_map>

#include "report/config_columns.h"

namespace tutti {
namespace {

/// Of a group: samples/s, or runs/s where nothing finer is recorded.
Estimate speed_of(const Group& group) {
  if (group.rate.n > 0) return group.rate;
  std::vector<double> runs_per_s;
  for (const Cell* cell : group.cells) {
    double seconds = cell->run_s;
    if (!(seconds > 0))
      for (const EpochTimes& epoch : cell->epochs) seconds += epoch.train_s.value_or(0);
    if (seconds > 0) runs_per_s.push_back(1 / seconds);
  }
  return estimate(runs_per_s);
}

bool has_one_source(const std::vector<Cell>& cells) {
  return std::all_of(cells.begin(), cells.end(), [&](const Cell& cell) { return cell.source == cells[0].source; });
}

Change change_of(const Ratio& ratio, double p, double threshold) {
  const bool is_large = ratio.ratio > 1 + threshold || ratio.ratio < 1 - threshold;
  if (is_large) return p >= kSignificant ? Change::unclear : ratio.ratio > 1 ? Change::faster : Change::slower;
  const bool is_surely_small = ratio.low > 1 - 2 * threshold && ratio.high < 1 + 2 * threshold;
  return p < kSignificant || is_surely_small ? Change::unchanged : Change::unclear;
}

const char* word(Change change) {
  switch (change) {
    case Change::faster:
      return "faster";
    case Change::slower:
      return "SLOWER";
    case Change::unchanged:
      return "unchanged";
    case Change::unclear:
      return "unclear";
    case Change::untold:
      return "cannot tell";
  }
  return "";
}

using Pair = std::pair<const Group*, const Group*>;

/// Takes those out of both that have a key in common which nobody else on their side has.
template <typename Key>
std::vector<Pair> take_pairs(std::vector<const Group*>& a, std::vector<const Group*>& b, const Key& key) {
  std::unordered_map<std::string, std::vector<const Group*>> in_a, in_b;
  for (const Group* group : a) in_a[key(group->source, group->config)].push_back(group);
  for (const Group* group : b) in_b[key(group->source, group->config)].push_back(group);
  std::vector<Pair> pairs;
  std::set<const Group*> taken;
  for (const Group* group : a) {
    const std::string name = key(group->source, group->config);
    const auto other = in_b.find(name);
    if (other == in_b.end() || other->second.size() != 1 || in_a[name].size() != 1) continue;
    pairs.emplace_back(group, other->second.front());
    taken.insert({group, other->second.front()});
  }
  for (std::vector<const Group*>* side : {&a, &b})
    side->erase(std::remove_if(side->begin(), side->end(), [&](const Group* group) { return taken.count(group) > 0; }),
                side->end());
  return pairs;
}

/// "bsp → dear", "batch 32 → 64".
std::string difference(const Configuration& a, const Configuration& b) {
  std::string text;
  for (const ConfigColumn& setting : config_columns({&a, &b}, {}, {})) {
    const std::string from = setting.value(a).text, to = setting.value(b).text;
    const bool is_named = setting.column.key == "strategy" || setting.column.key == "other";
    text += fmt::format("{}{}{} → {}", text.empty() ? "" : ", ", is_named ? "" : setting.column.label + " ",
                        from.empty() ? "-" : from, to.empty() ? "-" : to);
  }
  return text;
}

std::string list(const char* what, const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += fmt::format("{}: {}\n", what, name);
  return text;
}

}  // namespace

bool Comparison::is_worse() const {
  return !failed_in_b.empty() || std::any_of(configs.begin(), configs.end(), [](const ComparedConfig& config) {
    return config.change == Change::slower;
  });
}

Comparison compare_cells(const std::vector<Cell>& a, const std::vector<Cell>& b, double threshold) {
  Comparison result;
  result.threshold = threshold;
  const bool across = has_one_source(a) && has_one_source(b);
  const auto key = [across](Source source, const Configuration& config) {
    return (across ? "" : word(source)) + ("\x1f" + key_of(config));
  };
  const std::vector<Group> groups_a = group_cells(a), groups_b = group_cells(b);
  std::vector<const Group*> left_a, left_b;
  for (const Group& group : groups_a) left_a.push_back(&group);
  for (const Group& group : groups_b) left_b.push_back(&group);
  std::set<std::string> failed;
  for (const Cell& cell : b)
    if (cell.is_failed) failed.insert(key(cell.source, cell.config));
  std::vector<Pair> pairs = take_pairs(left_a, left_b, key);
  for (std::size_t i = 0; i < left_a.size();) {
    if (failed.count(key(left_a[i]->source, left_a[i]->config)) == 0) {
      ++i;
      continue;
    }
    result.failed_in_b.push_back(describe(left_a[i]->config));
    left_a.erase(left_a.begin() + static_cast<std::ptrdiff_t>(i));
  }
  const auto without_strategy = [&key](Source source, Configuration config) {
    config.strategy.clear();
    config.servers = -1;
    return key(source, config);
  };
  const auto model_and_data = [](Source, const Configuration& config) { return config.model + "\x1f" + config.data; };
  // Of two versions of one study what is left over is new or gone: only where nothing is equal, likes are looked for.
  if (pairs.empty() && result.failed_in_b.empty()) {
    pairs = take_pairs(left_a, left_b, without_strategy);
    if (left_a.size() == 1 && left_b.size() == 1)
      for (const Pair& pair : take_pairs(left_a, left_b, model_and_data)) pairs.push_back(pair);
  }
  std::vector<double> p_values;
  for (const auto& [first, second] : pairs) {
    ComparedConfig compared;
    compared.config = first->config;
    compared.differs = difference(first->config, second->config);
    if (first->config.strategy != second->config.strategy) compared.config.strategy.clear();
    compared.source_a = first->source;
    compared.source_b = second->source;
    compared.a = speed_of(*first);
    compared.b = speed_of(*second);
    if (compared.a.n == 0 || compared.b.n == 0) continue;
    compared.ratio = compare(compared.a, compared.b);
    compared.is_one_run = std::string(first->basis) == "steps" || std::string(second->basis) == "steps";
    p_values.push_back(compared.ratio.p);
    result.configs.push_back(std::move(compared));
  }
  for (const Group* group : left_a) result.only_in_a.push_back(describe(group->config));
  for (const Group* group : left_b) result.only_in_b.push_back(describe(group->config));
  const std::vector<double> adjusted = adjust_for_many(p_values);
  for (std::size_t i = 0; i < adjusted.size(); ++i)
    result.configs[i].change =
        result.configs[i].is_one_run ? Change::untold : change_of(result.configs[i].ratio, adjusted[i], threshold);
  return result;
}

Table comparison_table(const Comparison& comparison) {
  Table table{"comparison", "B compared with A", "", {}, {}};
  std::vector<const Configuration*> configs;
  bool has_one_runs = false, has_differences = false;
  for (const ComparedConfig& config : comparison.configs) {
    configs.push_back(&config.config);
    has_one_runs = has_one_runs || config.is_one_run;
    has_differences = has_differences || !config.differs.empty();
  }
  if (configs.empty()) return table;
  const std::vector<ConfigColumn> settings =
      config_columns(configs, {"model", "batch", "network", "strategy", "ranks"}, {});
  for (const ConfigColumn& setting : settings) table.columns.push_back(setting.column);
  if (has_differences) table.columns.push_back(as_setting({"differs", "A → B"}));
  table.columns.push_back({"source_a", "source of A"});
  table.columns.push_back({"a", "A", "plusminus", 2});
  table.columns.push_back({"source_b", "of B"});
  table.columns.push_back({"b", "B", "plusminus", 2});
  table.columns.push_back(as_answer({"ratio", "B/A", "number", 3}));
  table.columns.push_back({"low", "95 % from", "number", 3});
  table.columns.push_back({"high", "to", "number", 3});
  table.columns.push_back(as_answer({"change", "change"}));
  for (const ComparedConfig& config : comparison.configs) {
    TableRow row;
    for (const ConfigColumn& setting : settings) row.values.push_back(setting.value(config.config));
    const auto speed = [](const Estimate& estimate) {
      const bool has_spread = std::isfinite(estimate.standard_error);
      return plusminus_value(estimate.mean, has_spread ? std::optional<double>(estimate.deviation) : std::nullopt,
                             estimate.mean < 1 ? 6 : 2);
    };
    if (has_differences) row.values.push_back(text_value(config.differs));
    row.values.push_back(text_value(word(config.source_a)));
    row.values.push_back(speed(config.a));
    row.values.push_back(text_value(word(config.source_b)));
    row.values.push_back(speed(config.b));
    row.values.push_back(number_value(config.ratio.ratio, 3));
    const bool has_interval = std::isfinite(config.ratio.high);
    row.values.push_back(has_interval ? number_value(config.ratio.low, 3) : TableValue());
    row.values.push_back(has_interval ? number_value(config.ratio.high, 3) : TableValue());
    row.values.push_back(
        text_value(std::string(word(config.change)) + (config.change == Change::untold ? " (one run)" : "")));
    table.rows.push_back(std::move(row));
  }
  table.caption = fmt::format(
      "Samples/s (runs/s where only run times are known); above 1, B is faster. A change counts from {:g} % on, if it "
      "is "
      "significant at 5 % among {} comparisons (Welch, Holm).{}",
      100 * comparison.threshold, comparison.configs.size(),
      has_one_runs ? " \"one run\": how runs differ is not known, so nobody can tell. Repeat it: A1,A2,A3." : "");
  return table;
}

std::string sum_up(const Comparison& comparison) {
  const auto count = [&comparison](Change change) {
    return std::count_if(comparison.configs.begin(), comparison.configs.end(),
                         [change](const ComparedConfig& config) { return config.change == change; });
  };
  return list("only in A", comparison.only_in_a) + list("only in B", comparison.only_in_b) +
         list("FAILED in B", comparison.failed_in_b) +
         fmt::format("{} faster, {} slower, {} unchanged, {} unclear{}{}\n", count(Change::faster),
                     count(Change::slower), count(Change::unchanged), count(Change::unclear),
                     count(Change::untold) == 0 ? "" : fmt::format(", {} cannot tell", count(Change::untold)),
                     comparison.failed_in_b.empty() ? "" : fmt::format(", {} failed", comparison.failed_in_b.size()));
}

}  // namespace tutti
