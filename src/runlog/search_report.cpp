#include "runlog/search_report.h"

#include <fmt/format.h>

#include <algorithm>

namespace tutti {

SearchRecord describe_search(const StrategySearch& search) {
  SearchRecord record;
  record.steps = search.steps();
  record.chosen = static_cast<int64_t>(search.current_index());
  for (const SearchCandidate& one : search.candidates())
    record.candidates.push_back({one.strategy, one.settings, one.predicted_s, one.measured_s, search.step_s(one)});
  return record;
}

std::vector<std::string> search_lines(const StrategySearch& search) {
  const auto name = [](const SearchCandidate& one) {
    return one.settings.empty() ? one.strategy : one.strategy + " " + one.settings;
  };
  std::vector<const SearchCandidate*> tried;
  for (const SearchCandidate& one : search.candidates()) tried.push_back(&one);
  std::stable_sort(tried.begin(), tried.end(),
                   [&](const auto* a, const auto* b) { return search.step_s(*a) < search.step_s(*b); });
  std::size_t width = 0;
  for (const SearchCandidate* one : tried) width = std::max(width, name(*one).size());
  std::vector<std::string> lines = {
      fmt::format("auto: --strategy {}, after {} steps of trying:", name(search.current()), search.steps())};
  for (const SearchCandidate* one : tried)
    lines.push_back(fmt::format("  {} {:<{}}  {:>8.2f} ms a step, {:>8.2f} ms predicted",
                                one == &search.current() ? "*" : " ", name(*one), width, search.step_s(*one) * 1e3,
                                one->predicted_s * 1e3));
  return lines;
}

}  // namespace tutti
