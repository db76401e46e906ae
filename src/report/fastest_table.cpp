#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "report/config_columns.h"
#include "report/table_forms.h"

namespace tutti {
namespace {

/// Strategies that ran under the same conditions, fastest first.
struct Contest {
  Configuration conditions;
  std::vector<const Group*> groups;
};

std::vector<Contest> contests_of(const std::vector<Group>& groups) {
  std::vector<Contest> contests;
  std::map<std::string, std::size_t> places;
  for (const Group& group : groups) {
    if (group.rate.n == 0 || group.config.strategy.empty() || group.config.ranks < 2) continue;
    Configuration conditions = group.config;
    conditions.strategy.clear();
    conditions.servers = -1;  // what only some strategies have
    const auto [place, is_new] =
        places.emplace(fmt::format("{}\x1f{}", word(group.source), key_of(conditions)), contests.size());
    if (is_new) contests.push_back({conditions, {}});
    contests[place->second].groups.push_back(&group);
  }
  contests.erase(std::remove_if(contests.begin(), contests.end(),
                                [](const Contest& contest) { return contest.groups.size() < 2; }),
                 contests.end());
  for (Contest& contest : contests)
    std::stable_sort(contest.groups.begin(), contest.groups.end(),
                     [](const Group* a, const Group* b) { return a->rate.mean > b->rate.mean; });
  return contests;
}

/// Those that cannot be told from the first.
std::string equals(const Contest& contest) {
  std::string names = contest.groups[0]->config.strategy;
  for (std::size_t i = 1; i < contest.groups.size(); ++i)
    if (compare(contest.groups[i]->rate, contest.groups[0]->rate).p >= kSignificant)
      names += ", " + contest.groups[i]->config.strategy;
  return names;
}

}  // namespace

Table fastest_table(const std::vector<Group>& groups, std::vector<std::string>& notes) {
  Table table{"fastest", "Which strategy is fastest", "", {}, {}};
  const std::vector<Contest> contests = contests_of(groups);
  if (contests.empty()) return table;
  std::vector<const Configuration*> configs;
  configs.reserve(contests.size());
  for (const Contest& contest : contests) configs.push_back(&contest.conditions);
  const std::vector<ConfigColumn> settings =
      config_columns(configs, {"model", "batch", "network", "ranks"}, {"strategy", "servers"});
  table.columns.push_back({"source", "source"});
  for (const ConfigColumn& setting : settings) table.columns.push_back(setting.column);
  table.columns.push_back({"fastest", "fastest"});
  table.columns.push_back({"lead", "lead over the next", "percent", 1});
  table.columns.push_back({"low", "95 % from", "percent", 1});
  table.columns.push_back({"high", "to", "percent", 1});
  table.columns.push_back({"equals", "cannot be told apart"});
  std::size_t undecided = 0, single = 0;
  for (const Contest& contest : contests) {
    const Group &first = *contest.groups[0], &second = *contest.groups[1];
    const Ratio ratio = compare(second.rate, first.rate);
    const bool is_decided = ratio.p < kSignificant;
    undecided += is_decided ? 0 : 1;
    if (std::string(first.basis) == "steps" || std::string(second.basis) == "steps") ++single;
    TableRow row;
    row.values.push_back(text_value(word(first.source)));
    for (const ConfigColumn& setting : settings) row.values.push_back(setting.value(contest.conditions));
    row.values.push_back(text_value(is_decided ? first.config.strategy : "no winner"));
    row.values.push_back(percent_value(ratio.ratio - 1));
    const bool has_interval = std::isfinite(ratio.high);
    row.values.push_back(has_interval ? percent_value(ratio.low - 1) : TableValue());
    row.values.push_back(has_interval ? percent_value(ratio.high - 1) : TableValue());
    row.values.push_back(text_value(is_decided ? "" : equals(contest)));
    table.rows.push_back(std::move(row));
  }
  if (undecided > 0)
    notes.push_back(fmt::format(
        "in {} of {} comparisons of strategies noise exceeds the difference between the first two: no winner "
        "is named there",
        undecided, contests.size()));
  if (single > 0)
    notes.push_back(fmt::format(
        "in {} of {} comparisons of strategies there is one run of each: how runs differ is not known, so the "
        "intervals are too narrow. Repeat them",
        single, contests.size()));
  table.caption =
      "By samples/s, under the same conditions. A winner is named where its lead over the next is significant at 5 % "
      "(Welch's test).";
  return table;
}

}  // namespace tutti
