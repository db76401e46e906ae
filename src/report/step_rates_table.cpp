#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "report/config_columns.h"
#include "report/table_forms.h"

namespace tutti {
namespace {

/// "lm1:2, lm6:1", unequal nodes as they are.
std::string node_shares(const Cell& cell) {
  if (cell.nodes.size() == 1) return cell.nodes[0].name;
  std::string text;
  for (const NodeShare& node : cell.nodes)
    text += fmt::format("{}{}:{}", text.empty() ? "" : ", ", node.name, node.ranks);
  return text.empty() ? cell.node_list : text;
}

bool has_rates(const Cell& cell) {
  return std::any_of(cell.epochs.begin(), cell.epochs.end(),
                     [](const EpochTimes& epoch) { return !epoch.rates.empty(); });
}

/// Rates by step. A text that has a step twice keeps both.
std::map<int64_t, std::vector<double>> rates_by_step(const Cell& cell) {
  std::map<int64_t, std::vector<double>> rates;
  for (const EpochTimes& epoch : cell.epochs)
    for (const RateAtStep& rate : epoch.rates) rates[rate.step].push_back(rate.data_per_s);
  return rates;
}

TableValue rates_value(const std::vector<double>& rates) {
  TableValue value = number_value(rates.front(), 2);
  for (std::size_t i = 1; i < rates.size(); ++i) value.text += fmt::format(" / {:.2f}", rates[i]);
  return value;
}

}  // namespace

Table step_rates_table(const std::vector<Group>& groups, std::vector<std::string>& notes) {
  Table table{"step-rates", "Data/s as training goes on, and speed-up over one rank of the same node", "", {}, {}};
  std::vector<const Configuration*> configs;
  std::map<int64_t, std::string> steps;  // column keys
  bool has_repeats = false, has_names = false;
  for (const Group& group : groups)
    for (const Cell* cell : group.cells) {
      if (!has_rates(*cell)) continue;
      configs.push_back(&cell->config);
      has_names = has_names || !cell->run.empty();
      has_repeats = has_repeats || (cell->repeat > 1 && cell->run.empty());
      for (const auto& [step, rates] : rates_by_step(*cell)) steps[step] = fmt::format("step_{}", step);
    }
  if (configs.empty()) return table;
  const std::vector<ConfigColumn> settings = config_columns(configs, {"model", "batch", "ranks"}, {"other", "nodes"});
  if (has_names) table.columns.push_back(as_setting({"run", "run"}));
  table.columns.push_back(as_setting({"source", "source"}));
  for (const ConfigColumn& setting : settings) table.columns.push_back(setting.column);
  table.columns.push_back(as_setting({"node", "node(s)"}));
  if (has_repeats) table.columns.push_back(as_setting({"repeat", "repeat", "number"}));
  for (const auto& [step, key] : steps) table.columns.push_back({key, fmt::format("step {}", step), "number", 2});
  table.columns.push_back(as_answer({"rate", "data/s", "number", 2}));
  table.columns.push_back({"baseline", "baseline", "number", 2});
  table.columns.push_back(as_answer({"speedup", "speed-up", "number", 2}));
  for (const Group& group : groups)
    for (const Cell* cell : group.cells) {
      if (!has_rates(*cell)) continue;
      if (!table.has_room()) continue;
      TableRow row;
      if (has_names) row.values.push_back(text_value(run_names({cell})));
      row.values.push_back(text_value(word(cell->source)));
      for (const ConfigColumn& setting : settings) row.values.push_back(setting.value(cell->config));
      row.values.push_back(text_value(node_shares(*cell)));
      if (has_repeats) row.values.push_back(whole_value(cell->repeat, 0));
      const auto rates = rates_by_step(*cell);
      for (const auto& [step, key] : steps)
        row.values.push_back(rates.count(step) > 0 ? rates_value(rates.at(step)) : TableValue());
      const CellRate rate = rate_of(*cell);
      row.values.push_back(rate.rate.n > 0 ? number_value(rate.rate.mean, 2) : TableValue());
      const bool is_alone = cell->config.ranks == 1;
      row.values.push_back(is_alone ? TableValue() : number_value(group.baseline_rate, 2));
      std::optional<double> speedup;
      if (!is_alone && rate.rate.n > 0 && group.baseline_rate) speedup = rate.rate.mean / *group.baseline_rate;
      const std::optional<double>& stated = cell->stated.speedup;
      if (stated && speedup && is_stated_otherwise(*stated, *speedup))
        notes.push_back(fmt::format("{} on {}: the text states a speed-up of {:g}; its own figures give {:.2f}",
                                    describe(cell->config), node_shares(*cell), *stated, *speedup));
      row.values.push_back(number_value(stated ? stated : speedup, 2));
      table.rows.push_back(std::move(row));
    }
  table.caption =
      "data/s: over all steps after warm-up; of published rows, as stated. The baseline is one rank on the same node, "
      "on "
      "unequal nodes the slowest of them.";
  return table;
}

Table epochs_table(const std::vector<Cell>& cells) {
  Table table{"epochs", "Epoch time, test time and accuracy", "", {}, {}};
  const auto is_shown = [](const EpochTimes& epoch) { return epoch.train_s && (epoch.test_s || epoch.test_accuracy); };
  std::vector<const Configuration*> configs;
  bool has_repeats = false, has_names = false;
  for (const Cell& cell : cells) {
    if (cell.is_failed || std::none_of(cell.epochs.begin(), cell.epochs.end(), is_shown)) continue;
    configs.push_back(&cell.config);
    has_names = has_names || !cell.run.empty();
    has_repeats = has_repeats || (cell.repeat > 1 && cell.run.empty());
  }
  if (configs.empty()) return table;
  const std::vector<ConfigColumn> settings = config_columns(configs, {"model", "batch", "ranks"}, {"other", "nodes"});
  if (has_names) table.columns.push_back(as_setting({"run", "run"}));
  table.columns.push_back(as_setting({"source", "source"}));
  for (const ConfigColumn& setting : settings) table.columns.push_back(setting.column);
  table.columns.push_back(as_setting({"node", "node(s)"}));
  if (has_repeats) table.columns.push_back(as_setting({"repeat", "repeat", "number"}));
  table.columns.push_back(as_setting({"epoch", "epoch", "number"}));
  table.columns.push_back(as_answer({"train_s", "epoch s", "number", 2}));
  table.columns.push_back({"test_s", "test s", "number", 2});
  table.columns.push_back(as_answer({"accuracy", "test accuracy", "number", 4}));
  for (const Cell& cell : cells) {
    if (cell.is_failed) continue;
    for (const EpochTimes& epoch : cell.epochs) {
      if (!is_shown(epoch)) continue;
      if (!table.has_room()) continue;
      TableRow row;
      if (has_names) row.values.push_back(text_value(run_names({&cell})));
      row.values.push_back(text_value(word(cell.source)));
      for (const ConfigColumn& setting : settings) row.values.push_back(setting.value(cell.config));
      row.values.push_back(text_value(node_shares(cell)));
      if (has_repeats) row.values.push_back(whole_value(cell.repeat, 0));
      row.values.push_back(whole_value(epoch.epoch, -1));
      row.values.push_back(number_value(epoch.train_s, 2));
      row.values.push_back(number_value(epoch.test_s, 2));
      row.values.push_back(number_value(epoch.test_accuracy, 4));
      table.rows.push_back(std::move(row));
    }
  }
  return table;
}

}  // namespace tutti
