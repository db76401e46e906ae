// Throughput and efficiency against the number of ranks: a figure for each model, network and so on, a line for each
// strategy and source.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "report/charts.h"
#include "report/figures.h"

namespace tutti {
namespace {

constexpr std::size_t kMostPanels = 8;
constexpr std::size_t kMostBars = 8;

struct Panel {
  Configuration config;                                      // what all lines share
  std::map<std::string, std::map<int, const Group*>> lines;  // by strategy and source, then by ranks
  std::set<Source> sources;
  double baseline = 0;
  int most_ranks = 0;
};

std::vector<Panel> panels_of(const std::vector<Group>& groups) {
  std::vector<Panel> panels;
  std::map<std::string, std::size_t> places;
  for (const Group& group : groups) {
    if (group.rate.n == 0 || group.config.ranks < 1 || (group.is_baseline && group.config.ranks == 1)) continue;
    Configuration shared = group.config;
    shared.strategy.clear();
    shared.ranks = shared.nodes = 0;
    shared.servers = -1;
    const auto [place, is_new] = places.emplace(key_of(shared), panels.size());
    if (is_new) {
      panels.emplace_back();
      panels.back().config = shared;
    }
    Panel& panel = panels[place->second];
    const std::string strategy = group.config.strategy.empty() ? "training" : group.config.strategy;
    panel.sources.insert(group.source);
    panel.lines[fmt::format("{} ({})", strategy, word(group.source))][group.config.ranks] = &group;
    panel.most_ranks = std::max(panel.most_ranks, group.config.ranks);
    if (group.baseline_rate) panel.baseline = *group.baseline_rate;
  }
  // Where all comes from one source the caption of a table says so: names need not.
  for (Panel& panel : panels) {
    if (panel.sources.size() > 1) continue;
    const std::size_t suffix = fmt::format(" ({})", word(*panel.sources.begin())).size();
    decltype(panel.lines) plain;
    for (auto& [name, line] : panel.lines) plain.emplace(name.substr(0, name.size() - suffix), std::move(line));
    panel.lines = std::move(plain);
  }
  panels.erase(std::remove_if(panels.begin(), panels.end(), [](const Panel& panel) { return panel.most_ranks < 2; }),
               panels.end());
  return panels;
}

/// One rank alone: what others are compared with.
bool is_alone(const std::map<int, const Group*>& line) { return line.size() == 1 && line.begin()->first == 1; }

/// Strategies that all ran on one number of ranks: no line goes through that.
bool has_one_size(const Panel& panel) {
  return std::all_of(panel.lines.begin(), panel.lines.end(), [&](const auto& line) {
    return is_alone(line.second) || (line.second.size() == 1 && line.second.begin()->first == panel.most_ranks);
  });
}

double interval_of(const Group& group) {
  const double half = group.rate.half_width();
  return std::isfinite(half) ? half : 0;
}

/// Bars, the fastest on top.
Figure comparison(const Panel& panel, std::vector<std::string>& notes) {
  std::vector<std::pair<const Group*, std::string>> order;
  for (const auto& [name, line] : panel.lines)
    if (!is_alone(line)) order.emplace_back(line.begin()->second, name);
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.first->rate.mean > b.first->rate.mean; });
  BarChart chart;
  chart.x_label = "samples/s";
  chart.parts = {"samples/s"};
  for (const auto& [group, name] : order)
    if (chart.bars.size() < kMostBars) chart.bars.push_back({name, {group->rate.mean}, interval_of(*group)});
  if (order.size() > kMostBars)
    notes.push_back(
        fmt::format("the figure of {} shows the {} fastest of {}", panel_title(panel.config), kMostBars, order.size()));
  if (panel.baseline > 0) {
    chart.mark = panel.baseline * panel.most_ranks;
    chart.mark_name = fmt::format("ideal: {} × one rank", panel.most_ranks);
  }
  Figure figure;
  figure.title = fmt::format("Throughput: {}, {} ranks", panel_title(panel.config), panel.most_ranks);
  figure.height = chart_height(chart);
  figure.program = chart_program(chart);
  figure.caption = "Samples/s, with 95 % intervals where they are known: over repeats, of a single run over its parts.";
  return figure;
}

LineChart axes(const Panel& panel) {
  LineChart chart;
  chart.x_label = "ranks";
  // From eight ranks on, doublings: on two logarithmic axes the ideal is a straight line.
  chart.x_is_log = panel.most_ranks >= 8;
  std::set<double> counts = {1};
  for (const auto& [name, line] : panel.lines)
    for (const auto& [ranks, group] : line) counts.insert(ranks);
  chart.x_marks.assign(counts.begin(), counts.end());
  return chart;
}

/// A line of a panel; it starts at one rank, where that is known.
ChartLine line_of(const Panel& panel, const std::string& name, const std::map<int, const Group*>& line) {
  ChartLine result;
  result.name = name;
  if (panel.baseline > 0 && line.count(1) == 0) result.points.push_back({1, panel.baseline, 0});
  for (const auto& [ranks, group] : line)
    result.points.push_back({static_cast<double>(ranks), group->rate.mean, interval_of(*group)});
  return result;
}

Figure throughput(const Panel& panel) {
  LineChart chart = axes(panel);
  chart.y_label = "samples/s";
  chart.y_is_log = chart.x_is_log;
  chart.y_has_zero = !chart.y_is_log;
  for (const auto& [name, line] : panel.lines)
    if (!is_alone(line)) chart.lines.push_back(line_of(panel, name, line));
  if (panel.baseline > 0)
    chart.lines.push_back(
        {"ideal",
         {{1, panel.baseline, 0}, {static_cast<double>(panel.most_ranks), panel.baseline * panel.most_ranks, 0}},
         true});
  Figure figure;
  figure.title = "Throughput: " + panel_title(panel.config);
  figure.program = chart_program(chart);
  figure.curves = std::move(chart);
  figure.caption =
      "Samples/s against the number of ranks, with 95 % intervals where they are known; dashed: one rank's "
      "rate × ranks.";
  return figure;
}

Figure efficiency(const Panel& panel) {
  LineChart chart = axes(panel);
  chart.y_label = "% of one rank × ranks";
  chart.y_has_zero = true;
  for (const auto& [name, line] : panel.lines) {
    if (is_alone(line)) continue;
    ChartLine shares{name, {}, false};
    for (const ChartPoint& point : line_of(panel, name, line).points)
      shares.points.push_back({point.x, 100 * point.y / (panel.baseline * point.x), 0});
    chart.lines.push_back(std::move(shares));
  }
  chart.lines.push_back({"ideal", {{1, 100, 0}, {static_cast<double>(panel.most_ranks), 100, 0}}, true});
  Figure figure;
  figure.title = "Scaling efficiency: " + panel_title(panel.config);
  figure.program = chart_program(chart);
  figure.curves = std::move(chart);
  figure.caption = "Speed-up over one rank, divided by the number of ranks.";
  return figure;
}

}  // namespace

void add_scaling_figures(const std::vector<Group>& groups, std::vector<Figure>& figures,
                         std::vector<std::string>& notes) {
  const std::vector<Panel> panels = panels_of(groups);
  for (std::size_t i = 0; i < std::min(panels.size(), kMostPanels); ++i) {
    const bool is_comparison = has_one_size(panels[i]);
    // One bar is no picture.
    const auto shown = std::count_if(panels[i].lines.begin(), panels[i].lines.end(),
                                     [](const auto& line) { return !is_alone(line.second); });
    if (is_comparison && shown < 2 && panels[i].baseline <= 0) continue;
    figures.push_back(is_comparison ? comparison(panels[i], notes) : throughput(panels[i]));
    figures.back().id = fmt::format("throughput-{}", i + 1);
    if (is_comparison || panels[i].baseline <= 0) continue;
    figures.push_back(efficiency(panels[i]));
    figures.back().id = fmt::format("efficiency-{}", i + 1);
  }
  if (panels.size() > kMostPanels)
    notes.push_back(fmt::format("{} of {} figures of throughput are drawn; report fewer runs to see others",
                                kMostPanels, panels.size()));
}

}  // namespace tutti
