#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "record/node_list.h"
#include "report/config_columns.h"
#include "report/table_forms.h"

namespace tutti {
namespace {

/// Runs of one configuration, whatever nodes they ran on.
struct Runs {
  std::vector<const Cell*> cells;
  const Cell* stated_average = nullptr;

  const Cell& first() const { return cells.empty() ? *stated_average : *cells.front(); }
  double mean_s() const {
    double sum = 0;
    for (const Cell* cell : cells) sum += cell->run_s;
    if (cells.empty()) return stated_average != nullptr ? stated_average->run_s : 0;
    return sum / static_cast<double>(cells.size());
  }
  /// As the text has it, where it does.
  double shown_mean_s() const { return stated_average != nullptr ? stated_average->run_s : mean_s(); }
};

std::string runs_key(const Cell& cell) { return fmt::format("{}\x1f{}", word(cell.source), key_of(cell.config)); }

/// What a run on one rank shares with those that are measured against it.
std::string baseline_key(const Cell& cell) {
  Configuration config = cell.config;
  config.ranks = config.nodes = 0;
  config.strategy.clear();
  config.network.clear();
  config.transport.clear();
  config.wire.clear();
  config.servers = -1;
  return fmt::format("{}\x1f{}", word(cell.source), key_of(config));
}

int64_t epochs_of(const Cell& cell) {
  return cell.stated.epochs ? *cell.stated.epochs : static_cast<int64_t>(cell.epochs.size());
}

double samples_of(const Cell& cell) { return static_cast<double>(cell.steps) * cell.samples_per_step; }

/// How many times a baseline's work a run did: by samples, and by epochs of a text that states no more. Steps say
/// nothing: more ranks go through more samples in as many.
double share_of_work(const Cell& cell, const Cell& baseline) {
  if (samples_of(cell) > 0 && samples_of(baseline) > 0) return samples_of(cell) / samples_of(baseline);
  const auto epochs = static_cast<double>(epochs_of(cell)), of_baseline = static_cast<double>(epochs_of(baseline));
  return epochs > 0 && of_baseline > 0 ? epochs / of_baseline : 1;
}

/// How much faster than one rank, for as many samples.
std::optional<double> speedup_of(const Runs& runs, const std::vector<const Runs*>& baselines) {
  double seconds = 0;
  for (const Runs* baseline : baselines)
    seconds += baseline->shown_mean_s() * share_of_work(runs.first(), baseline->first());
  if (!(seconds > 0) || !(runs.shown_mean_s() > 0)) return std::nullopt;
  return seconds / static_cast<double>(baselines.size()) / runs.shown_mean_s();
}

/// "2", or "3+2" where nodes differ.
TableValue ranks_per_node(const Cell& cell) {
  const Configuration& config = cell.config;
  const bool is_unequal = std::any_of(cell.nodes.begin(), cell.nodes.end(),
                                      [&](const NodeShare& node) { return node.ranks != cell.nodes[0].ranks; });
  if (!is_unequal) return whole_value(config.nodes > 0 ? config.ranks / config.nodes : config.ranks, 0);
  std::string text;
  for (const NodeShare& node : cell.nodes) text += fmt::format("{}{}", text.empty() ? "" : "+", node.ranks);
  return text_value(text);
}

}  // namespace

Table nodes_table(const std::vector<Cell>& cells, std::vector<std::string>& notes) {
  Table table{"nodes", "Run time by nodes and ranks of each", "", {}, {}};
  std::vector<Runs> all;
  std::unordered_map<std::string, std::size_t> places;
  std::vector<const Configuration*> configs;
  bool has_names = false;
  for (const Cell& cell : cells) {
    if (cell.is_failed || !(cell.run_s > 0)) continue;
    const auto [place, is_new] = places.emplace(runs_key(cell), all.size());
    if (is_new) all.emplace_back();
    if (cell.stated.is_average)
      all[place->second].stated_average = &cell;
    else
      all[place->second].cells.push_back(&cell);
    configs.push_back(&cell.config);
    has_names = has_names || !cell.run.empty();
  }
  if (all.empty()) return table;
  std::unordered_map<std::string, std::vector<const Runs*>> baselines;
  for (const Runs& runs : all)
    if (runs.first().config.ranks == 1) baselines[baseline_key(runs.first())].push_back(&runs);

  const std::vector<ConfigColumn> settings = config_columns(configs, {"model", "data"}, {"nodes", "ranks", "batch"});
  if (has_names) table.columns.push_back(as_setting({"run", "run"}));
  table.columns.push_back(as_setting({"source", "source"}));
  for (const ConfigColumn& setting : settings) table.columns.push_back(setting.column);
  table.columns.push_back(as_setting({"nodes", "#nodes", "number"}));
  table.columns.push_back(as_setting({"ranks", "#" + rank_word(configs), "number"}));
  table.columns.push_back({"epochs", "epochs", "number"});
  table.columns.push_back({"batch", "batch size", "number"});
  table.columns.push_back({"steps", "steps", "number"});
  table.columns.push_back(as_answer({"run_s", "run time", "duration"}));
  table.columns.push_back(as_answer({"speedup", "speed-up", "number", 2}));
  table.columns.push_back({"node_list", "node(s)"});
  const auto add = [&](const Cell& cell, double run_s, const std::optional<double>& speedup, const std::string& where) {
    if (!table.has_room()) return;
    TableRow row;
    if (has_names) row.values.push_back(where == "Avg" ? TableValue() : text_value(run_names({&cell})));
    row.values.push_back(text_value(word(cell.source)));
    for (const ConfigColumn& setting : settings) row.values.push_back(setting.value(cell.config));
    row.values.push_back(whole_value(cell.config.nodes, 0));
    row.values.push_back(ranks_per_node(cell));
    row.values.push_back(whole_value(epochs_of(cell), -1));
    row.values.push_back(whole_value(cell.config.batch, 0));
    row.values.push_back(whole_value(cell.steps, 0));
    row.values.push_back(duration_value(run_s));
    row.values.push_back(number_value(speedup, 2));
    row.values.push_back(text_value(where));
    row.is_summary = where == "Avg";
    table.rows.push_back(std::move(row));
  };
  for (const Runs& runs : all) {
    const bool has_average = runs.cells.size() > 1 || runs.stated_average != nullptr;
    std::optional<double> speedup = speedup_of(runs, baselines[baseline_key(runs.first())]);
    const Cell& stating = runs.stated_average != nullptr ? *runs.stated_average : runs.first();
    if (const auto& stated = stating.stated.speedup) {
      if (speedup && is_stated_otherwise(*stated, *speedup))
        notes.push_back(fmt::format("{}: the text states a speed-up of {:g}; its own run times give {:.2f}",
                                    describe(stating.config), *stated, *speedup));
      speedup = stated;
    }
    for (const Cell* cell : runs.cells) add(*cell, cell->run_s, has_average ? std::nullopt : speedup, cell->node_list);
    if (!has_average) continue;
    if (runs.stated_average != nullptr && !runs.cells.empty() && std::abs(runs.mean_s() - stating.run_s) > 1)
      notes.push_back(fmt::format("{}: the text states an average run time of {}; its rows give {}",
                                  describe(stating.config), hours_minutes_seconds(stating.run_s),
                                  hours_minutes_seconds(runs.mean_s())));
    add(stating, runs.shown_mean_s(), speedup, "Avg");
  }
  table.caption =
      "Avg: mean over repeats, wherever they ran. The speed-up is over one rank on one node, for as many samples.";
  return table;
}

}  // namespace tutti
