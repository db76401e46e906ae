#include <fmt/format.h>

#include <cmath>

#include "report/config_columns.h"
#include "report/contests.h"
#include "report/table_forms.h"

namespace tutti {

Table fastest_table(const std::vector<Group>& groups, std::vector<std::string>& notes) {
  Table table{"fastest", "Which strategy is fastest", "", {}, {}};
  const std::vector<Contest> contests = strategy_contests(groups);
  if (contests.empty()) return table;
  std::vector<const Configuration*> configs;
  configs.reserve(contests.size());
  for (const Contest& contest : contests) configs.push_back(&contest.conditions);
  const std::vector<ConfigColumn> settings =
      config_columns(configs, {"model", "batch", "network", "ranks"}, {"strategy", "servers"});
  table.columns.push_back(as_setting({"source", "source"}));
  for (const ConfigColumn& setting : settings) table.columns.push_back(setting.column);
  table.columns.push_back(as_answer({"fastest", "fastest"}));
  table.columns.push_back(as_answer({"lead", "lead over the next", "percent", 1}));
  table.columns.push_back({"low", "95 % from", "percent", 1});
  table.columns.push_back({"high", "to", "percent", 1});
  table.columns.push_back(as_answer({"equals", "cannot be told apart"}));
  std::size_t undecided = 0, single = 0;
  for (const Contest& contest : contests) {
    const Ratio& lead = contest.lead;
    undecided += contest.verdict == Verdict::no_winner ? 1 : 0;
    single += contest.verdict == Verdict::cannot_tell ? 1 : 0;
    TableRow row;
    row.values.push_back(text_value(word(contest.first().source)));
    for (const ConfigColumn& setting : settings) row.values.push_back(setting.value(contest.conditions));
    const bool has_winner = contest.verdict == Verdict::winner;
    std::string equals;
    if (!has_winner)
      for (const Group* group : contest.equals()) equals += (equals.empty() ? "" : ", ") + group->config.strategy;
    row.values.push_back(text_value(has_winner                                ? contest.first().config.strategy
                                    : contest.verdict == Verdict::cannot_tell ? "cannot tell"
                                                                              : "no winner"));
    row.values.push_back(percent_value(lead.ratio - 1));
    const bool has_interval = std::isfinite(lead.high);
    row.values.push_back(has_interval ? percent_value(lead.low - 1) : TableValue());
    row.values.push_back(has_interval ? percent_value(lead.high - 1) : TableValue());
    row.values.push_back(text_value(std::move(equals)));
    table.rows.push_back(std::move(row));
  }
  if (undecided > 0)
    notes.push_back(fmt::format(
        "in {} of {} comparisons of strategies noise exceeds the difference between the first two: no winner "
        "is named there",
        undecided, contests.size()));
  if (single > 0)
    notes.push_back(fmt::format(
        "in {} of {} comparisons of strategies there is one run of the first or the second: how runs differ is not "
        "known, so no winner is named there. Repeat them",
        single, contests.size()));
  table.caption =
      "By samples/s, under the same conditions. A winner is named where its lead over the next is significant at 5 % "
      "(Welch's test) and both ran more than once.";
  return table;
}

}  // namespace tutti
