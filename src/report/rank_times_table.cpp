#include <algorithm>

#include "report/config_columns.h"
#include "report/table_forms.h"

namespace tutti {
namespace {

bool has_rank_times(const Cell& cell) {
  return !cell.is_failed && std::any_of(cell.epochs.begin(), cell.epochs.end(),
                                        [](const EpochTimes& epoch) { return !epoch.ranks.empty(); });
}

}  // namespace

Table rank_times_table(const std::vector<Cell>& cells) {
  Table table{"rank-times", "Training and communication time of every rank and epoch", "", {}, {}};
  std::vector<const Configuration*> configs;
  bool has_names = false, has_repeats = false, has_nodes = false, has_exposed = false, has_waits = false;
  for (const Cell& cell : cells) {
    if (!has_rank_times(cell)) continue;
    configs.push_back(&cell.config);
    has_names = has_names || !cell.run.empty();
    has_repeats = has_repeats || (cell.repeat > 1 && cell.run.empty());
    for (const EpochTimes& epoch : cell.epochs)
      for (const RankTimesOfEpoch& rank : epoch.ranks) {
        has_nodes = has_nodes || !rank.node.empty();
        has_exposed = has_exposed || rank.comm_exposed_s.has_value();
        has_waits = has_waits || rank.data_wait_s.has_value();
      }
  }
  if (configs.empty()) return table;
  std::vector<ConfigColumn> settings = config_columns(configs, {"model", "batch", "workers", "ranks"}, {});
  if (has_names) table.columns.push_back(as_setting({"run", "run"}));
  table.columns.push_back(as_setting({"source", "source"}));
  for (const ConfigColumn& setting : settings) table.columns.push_back(setting.column);
  if (has_repeats) table.columns.push_back(as_setting({"repeat", "repeat", "number"}));
  table.columns.push_back(as_setting({"epoch", "epoch", "number"}));
  table.columns.push_back(as_setting({"rank", "rank", "number"}));
  if (has_nodes) table.columns.push_back(as_setting({"node", "node"}));
  table.columns.push_back(as_answer({"train_s", "training s", "number", 2}));
  table.columns.push_back(as_answer({"comm_s", "communication s", "number", 4}));
  if (has_exposed) table.columns.push_back({"exposed_s", "exposed s", "number", 4});
  if (has_waits) table.columns.push_back({"data_wait_s", "data wait s", "number", 4});
  for (const Cell& cell : cells) {
    if (!has_rank_times(cell)) continue;
    for (const EpochTimes& epoch : cell.epochs)
      for (const RankTimesOfEpoch& rank : epoch.ranks) {
        if (!table.has_room()) continue;
        TableRow row;
        if (has_names) row.values.push_back(text_value(run_names({&cell})));
        row.values.push_back(text_value(word(cell.source)));
        for (const ConfigColumn& setting : settings) row.values.push_back(setting.value(cell.config));
        if (has_repeats) row.values.push_back(whole_value(cell.repeat, 0));
        row.values.push_back(whole_value(epoch.epoch, -1));
        row.values.push_back(whole_value(rank.rank, -1));
        if (has_nodes) row.values.push_back(text_value(rank.node));
        row.values.push_back(number_value(rank.train_s, 2));
        row.values.push_back(number_value(rank.comm_s, 4));
        if (has_exposed) row.values.push_back(number_value(rank.comm_exposed_s, 4));
        if (has_waits) row.values.push_back(number_value(rank.data_wait_s, 4));
        table.rows.push_back(std::move(row));
      }
  }
  return table;
}

}  // namespace tutti
