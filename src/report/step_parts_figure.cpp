#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "report/charts.h"
#include "report/figures.h"

namespace tutti {
namespace {

constexpr std::size_t kMostPartBars = 8, kMostPartsFigures = 4;

/// The mean of the parts of a group's cells; without cells that have them, none.
std::optional<StepParts> mean_parts(const Group& group) {
  StepParts sum;
  std::map<std::string, double> exposed;
  double count = 0;
  for (const Cell* cell : group.cells) {
    if (!cell->parts) continue;
    ++count;
    sum.compute_s += cell->parts->compute_s;
    sum.data_wait_s += cell->parts->data_wait_s;
    sum.optimizer_s += cell->parts->optimizer_s;
    for (const auto& [cause, seconds] : cell->parts->exposed) exposed[cause] += seconds;
  }
  if (count == 0) return std::nullopt;
  sum.compute_s /= count;
  sum.data_wait_s /= count;
  sum.optimizer_s /= count;
  for (const auto& [cause, seconds] : exposed) sum.exposed.emplace_back(cause, seconds / count);
  return sum;
}

using Bars = std::vector<std::pair<const Group*, StepParts>>;

Figure parts_figure(const Bars& bars, std::size_t number) {
  std::set<std::string> causes;
  std::vector<const Group*> shown;
  for (const auto& [group, parts] : bars) {
    shown.push_back(group);
    for (const auto& [cause, seconds] : parts.exposed)
      if (seconds > 0) causes.insert(cause);
  }
  BarChart chart;
  chart.x_label = "ms per step";
  chart.parts = {"compute"};
  for (const std::string& cause : causes) chart.parts.push_back("exposed: " + cause);
  chart.parts.insert(chart.parts.end(), {"data wait", "optimizer"});
  const std::vector<std::string> names = curve_names(shown);
  for (std::size_t i = 0; i < bars.size(); ++i) {
    const StepParts& parts = bars[i].second;
    ChartBar bar{names[i], {parts.compute_s * 1e3}, 0};
    for (const std::string& cause : causes) {
      const auto found = std::find_if(parts.exposed.begin(), parts.exposed.end(),
                                      [&cause](const auto& part) { return part.first == cause; });
      bar.parts.push_back(found == parts.exposed.end() ? 0.0 : found->second * 1e3);
    }
    bar.parts.push_back(parts.data_wait_s * 1e3);
    bar.parts.push_back(parts.optimizer_s * 1e3);
    chart.bars.push_back(std::move(bar));
  }
  Figure figure;
  figure.id = number == 0 ? "step-parts" : fmt::format("step-parts-{}", number + 1);
  Configuration shared = shown.front()->config;
  if (std::any_of(shown.begin(), shown.end(), [&](auto* group) { return group->config.strategy != shared.strategy; }))
    shared.strategy.clear();
  if (std::any_of(shown.begin(), shown.end(), [&](auto* group) { return group->config.ranks != shared.ranks; }))
    shared.ranks = 0;
  figure.title = "Where the time of a step goes: " + panel_title(shared);
  figure.caption = "Milliseconds per step, mean over ranks. Exposed: communication that computation waited for.";
  figure.height = chart_height(chart);
  figure.program = chart_program(chart);
  return figure;
}

}  // namespace

void add_step_parts_figure(const std::vector<Group>& groups, std::vector<Figure>& figures,
                           std::vector<std::string>& notes) {
  // What ran under the same conditions stands in one figure.
  std::vector<Bars> panels;
  std::map<std::string, std::size_t> places;
  std::size_t left_out = 0;
  for (const Group& group : groups) {
    std::optional<StepParts> mean = mean_parts(group);
    if (!mean) continue;
    Configuration shared = group.config;
    shared.strategy.clear();
    shared.servers = -1;
    // Runs that somebody has named are compared with each other, whatever they differ in.
    const bool is_named = !group.cells.front()->run.empty();
    const std::string key = is_named ? "" : fmt::format("{}\x1f{}", word(group.source), key_of(shared));
    const auto [place, is_new] = places.emplace(key, panels.size());
    if (is_new) panels.emplace_back();
    if (panels[place->second].size() < kMostPartBars)
      panels[place->second].emplace_back(&group, std::move(*mean));
    else
      ++left_out;
  }
  // Of one bar each: side by side, as they came.
  const bool are_single = panels.size() > 1 && std::all_of(panels.begin(), panels.end(),
                                                           [](const auto& panel) { return panel.size() == 1; });
  if (are_single) {
    Bars all;
    for (auto& panel : panels)
      if (all.size() < kMostPartBars)
        all.push_back(std::move(panel.front()));
      else
        ++left_out;
    panels = {std::move(all)};
  }
  // Beside figures that compare, those of a lone baseline say nothing.
  if (std::any_of(panels.begin(), panels.end(), [](const Bars& panel) { return panel.size() > 1; }))
    panels.erase(std::remove_if(panels.begin(), panels.end(), [](const Bars& panel) { return panel.size() == 1; }),
                 panels.end());
  for (std::size_t i = kMostPartsFigures; i < panels.size(); ++i) left_out += panels[i].size();
  if (panels.size() > kMostPartsFigures) panels.resize(kMostPartsFigures);
  if (left_out > 0) notes.push_back(fmt::format("{} more configurations are not in the figures of steps", left_out));
  for (std::size_t i = 0; i < panels.size(); ++i) figures.push_back(parts_figure(panels[i], i));
}

}  // namespace tutti
