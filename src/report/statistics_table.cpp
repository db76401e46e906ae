#include <algorithm>
#include <cmath>

#include "report/config_columns.h"
#include "report/table_forms.h"

namespace tutti {

Table statistics_table(const std::vector<Group>& groups) {
  Table table{"statistics", "What the figures rest on", "", {}, {}};
  const auto is_shown = [](const Group& group) { return group.rate.n > 0 && std::string(group.basis) != "stated"; };
  std::vector<const Configuration*> configs;
  for (const Group& group : groups)
    if (is_shown(group)) configs.push_back(&group.config);
  if (configs.empty()) return table;
  const std::vector<ConfigColumn> settings =
      config_columns(configs, {"model", "batch", "network", "strategy", "ranks"}, {});
  const bool has_names =
      std::any_of(groups.begin(), groups.end(), [](const Group& group) { return !run_names(group.cells).empty(); });
  if (has_names) table.columns.push_back(as_setting({"run", "run"}));
  table.columns.push_back(as_setting({"source", "source"}));
  for (const ConfigColumn& setting : settings) table.columns.push_back(setting.column);
  for (TableColumn column :
       {TableColumn{"runs", "runs", "number", 0}, TableColumn{"basis", "spread over", "text", 0},
        TableColumn{"median", "median", "number", 2}, as_answer({"mean", "mean", "number", 2}),
        TableColumn{"deviation", "deviation", "number", 2}, TableColumn{"low", "95 % from", "number", 2},
        TableColumn{"high", "to", "number", 2}, as_answer({"speedup", "speed-up", "number", 2}),
        TableColumn{"steps", "steps used", "number", 0}, TableColumn{"dropped", "warm-up dropped", "number", 0}})
    table.columns.push_back(std::move(column));
  for (const Group& group : groups) {
    if (!is_shown(group)) continue;
    TableRow row;
    if (has_names) row.values.push_back(text_value(run_names(group.cells)));
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
      "of how runs differ. Warm-up is what was declared, or what the MSER rule finds if that is more.";
  return table;
}

}  // namespace tutti
