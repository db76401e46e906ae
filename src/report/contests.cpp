#include "report/contests.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "report/figures.h"

namespace tutti {
namespace {

// Simulated figures are exact: less would be shown as 0.0 %.
constexpr double kLeastLead = 1.0005;

bool has_one_run(const Group& group) { return std::string(group.basis) == "steps"; }

void judge(Contest& contest) {
  std::stable_sort(contest.groups.begin(), contest.groups.end(),
                   [](const Group* a, const Group* b) { return a->rate.mean > b->rate.mean; });
  contest.lead = compare(contest.second().rate, contest.first().rate);
  if (has_one_run(contest.first()) || has_one_run(contest.second()))
    contest.verdict = Verdict::cannot_tell;
  else if (contest.lead.ratio < kLeastLead)
    contest.verdict = Verdict::no_winner;
  else
    contest.verdict = contest.lead.p < kSignificant ? Verdict::winner : Verdict::no_winner;
}

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string interval(const Ratio& lead) {
  if (!std::isfinite(lead.high)) return "how far that can be trusted is not known";
  return fmt::format("95 %: {} to {}", percent(lead.low - 1), percent(lead.high - 1));
}

std::string samples_per_s(const Group& group) { return fmt::format("{:.1f} samples/s", group.rate.mean); }

/// The names of a contest's groups: strategies where these tell them apart, else their runs, else what differs.
std::map<const Group*, std::string> names_of(const Contest& contest, bool is_of_strategies) {
  std::map<const Group*, std::string> names;
  const std::vector<std::string> labels = short_labels(contest.groups);
  for (std::size_t i = 0; i < contest.groups.size(); ++i) {
    const Group& group = *contest.groups[i];
    const std::string runs = run_names(group.cells);
    names[&group] = is_of_strategies ? group.config.strategy : runs.empty() ? labels[i] : runs;
  }
  return names;
}

Headline headline_of(const Contest& contest, bool is_of_strategies) {
  auto names = names_of(contest, is_of_strategies);
  const std::string first = names[&contest.first()], second = names[&contest.second()];
  const std::string lead = percent(contest.lead.ratio - 1);
  if (contest.verdict == Verdict::winner)
    return {"fastest", fmt::format("{}, {} ahead", first, lead),
            fmt::format("of {}; {}; {}", second, interval(contest.lead), samples_per_s(contest.first()))};
  if (contest.verdict == Verdict::cannot_tell)
    return {"fastest", "cannot tell",
            fmt::format("one run is not enough: {} was {} ahead of {} in it. Repeat them", first, lead, second)};
  std::vector<std::string> equals;
  for (const Group* group : contest.equals()) equals.push_back(names[group]);
  return {"fastest", "no winner",
          fmt::format("{} cannot be told apart: {} was {} ahead, {}", fmt::join(equals, ", "), first, lead,
                      interval(contest.lead))};
}

/// Of many contests: how often each came first.
Headline headline_of(const std::vector<Contest>& contests) {
  std::map<std::string, std::size_t> wins;
  std::size_t undecided = 0, untold = 0;
  for (const Contest& contest : contests) {
    if (contest.verdict == Verdict::winner) ++wins[contest.first().config.strategy];
    undecided += contest.verdict == Verdict::no_winner ? 1 : 0;
    untold += contest.verdict == Verdict::cannot_tell ? 1 : 0;
  }
  std::vector<std::pair<std::size_t, std::string>> order;
  order.reserve(wins.size());
  for (const auto& [name, count] : wins) order.emplace_back(count, name);
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string detail;
  for (const auto& [count, name] : order) detail += fmt::format("{}{} {}", detail.empty() ? "" : ", ", name, count);
  const auto add = [&detail](std::size_t count, const char* what) {
    if (count > 0) detail += fmt::format("{}{} {}", detail.empty() ? "" : ", ", what, count);
  };
  add(undecided, "no winner");
  add(untold, "cannot tell (one run each)");
  const std::size_t all = contests.size();
  const std::size_t others = undecided + untold;
  if (!order.empty() && order[0].first * 2 < all && others * 2 > all)
    return {"fastest", fmt::format("no winner in {} of {}", others, all),
            fmt::format("comparisons of strategies under the same conditions: {}", detail)};
  if (order.empty())
    return {"fastest", untold > undecided ? "cannot tell" : "no winner",
            fmt::format("of {} comparisons: {}", all, detail)};
  return {"fastest", fmt::format("{} in {} of {}", order[0].second, order[0].first, all),
          fmt::format("comparisons of strategies under the same conditions: {}", detail)};
}

/// Everything of one model, data and source, where there is nothing else.
std::vector<Contest> contest_of_all(const std::vector<Group>& groups) {
  Contest contest;
  for (const Group& group : groups) {
    if (group.rate.n == 0) continue;
    if (contest.groups.empty()) contest.conditions = group.config;
    const bool is_alike = contest.groups.empty() ||
                          (group.source == contest.first().source && group.config.model == contest.conditions.model &&
                           group.config.data == contest.conditions.data);
    if (!is_alike || group.source == Source::published) return {};
    contest.groups.push_back(&group);
  }
  if (contest.groups.size() < 2) return {};
  judge(contest);
  return {contest};
}

}  // namespace

std::vector<const Group*> Contest::equals() const {
  std::vector<const Group*> result = {groups[0]};
  for (std::size_t i = 1; i < groups.size(); ++i)
    if (has_one_run(*groups[0]) || has_one_run(*groups[i]) ||
        compare(groups[i]->rate, groups[0]->rate).p >= kSignificant)
      result.push_back(groups[i]);
  return result;
}

std::vector<Contest> strategy_contests(const std::vector<Group>& groups) {
  std::vector<Contest> contests;
  std::map<std::string, std::size_t> places;
  for (const Group& group : groups) {
    if (group.rate.n == 0 || group.config.strategy.empty() || group.config.ranks < 2) continue;
    Configuration conditions = group.config;
    conditions.strategy.clear();
    conditions.servers = -1;  // what only some strategies have
    const auto [place, is_new] =
        places.emplace(fmt::format("{}\x1f{}", word(group.source), key_of(conditions)), contests.size());
    if (is_new) contests.push_back({conditions, {}, {}, {}});
    contests[place->second].groups.push_back(&group);
  }
  contests.erase(std::remove_if(contests.begin(), contests.end(),
                                [](const Contest& contest) { return contest.groups.size() < 2; }),
                 contests.end());
  for (Contest& contest : contests) judge(contest);
  return contests;
}

std::vector<Headline> headlines(const std::vector<Group>& groups) {
  const std::vector<Contest> contests = strategy_contests(groups);
  if (contests.size() > 1) return {headline_of(contests)};
  if (contests.size() == 1) return {headline_of(contests.front(), true)};
  if (const std::vector<Contest> all = contest_of_all(groups); !all.empty()) return {headline_of(all.front(), false)};
  if (groups.size() != 1 || groups[0].rate.n == 0 || groups[0].cells.empty()) return {};
  const Cell& cell = *groups[0].cells.back();
  std::vector<Headline> lines = {{"speed", samples_per_s(groups[0]), describe(groups[0].config)}};
  if (cell.test_accuracy) lines.push_back({"test accuracy", fmt::format("{:.4f}", *cell.test_accuracy), ""});
  return lines;
}

}  // namespace tutti
