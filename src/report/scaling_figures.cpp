// Throughput and efficiency against the number of ranks: a figure for each model, network and so on, a line for each
// strategy and source.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/gnuplot.h"
#include "report/figures.h"

namespace tutti {
namespace {

constexpr std::size_t kMostPanels = 8;

struct Panel {
  Configuration config;                                      // what all lines share
  std::map<std::string, std::map<int, const Group*>> lines;  // by strategy and source, then by ranks
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
    panel.lines[fmt::format("{} ({})", strategy, word(group.source))][group.config.ranks] = &group;
    panel.most_ranks = std::max(panel.most_ranks, group.config.ranks);
    if (group.baseline_rate) panel.baseline = *group.baseline_rate;
  }
  panels.erase(std::remove_if(panels.begin(), panels.end(), [](const Panel& panel) { return panel.most_ranks < 2; }),
               panels.end());
  return panels;
}

std::string axes(const Panel& panel) {
  std::string text = "set grid\nset key outside right noenhanced\nset xlabel 'ranks'\n";
  std::map<int, bool> counts = {{1, true}};
  for (const auto& [name, line] : panel.lines)
    for (const auto& [ranks, group] : line) counts[ranks] = true;
  text += "set xtics (";
  for (const auto& [count, ignored] : counts)
    text += fmt::format("{}'{}' {}", text.back() == '(' ? "" : ", ", count, count);
  return text + ")\n";
}

Figure throughput(const Panel& panel) {
  Figure figure;
  figure.title = "Throughput: " + panel_title(panel.config);
  // From eight ranks on, doublings: on two logarithmic axes the ideal is a straight line.
  const bool doubles = panel.most_ranks >= 8;
  figure.program =
      axes(panel) + "set ylabel 'samples/s'\n" +
      (doubles ? fmt::format("set logscale x 2\nset logscale y\nset xrange [0.9:{}]\n", panel.most_ranks * 1.2)
               : fmt::format("set yrange [0:*]\nset xrange [0.8:{}]\n", panel.most_ranks + 0.2));
  std::string blocks, curves;
  if (panel.baseline > 0) {
    blocks += fmt::format("$ideal << END\n1 {:.9g}\n{} {:.9g}\nEND\n", panel.baseline, panel.most_ranks,
                          panel.baseline * panel.most_ranks);
    curves = "$ideal using 1:2 with lines dashtype 2 linecolor rgb '#888888' title 'ideal'";
  }
  int number = 0;
  for (const auto& [name, line] : panel.lines) {
    blocks += fmt::format("$line{} << END\n", number);
    for (const auto& [ranks, group] : line) {
      const double half = group->rate.half_width();
      blocks += fmt::format("{} {:.9g} {:.9g}\n", ranks, group->rate.mean, std::isfinite(half) ? half : 0.0);
    }
    blocks += "END\n";
    curves += fmt::format("{}$line{} using 1:2:3 with yerrorlines linewidth 1.5 title {}", curves.empty() ? "" : ", ",
                          number, gnuplot_quoted(name));
    ++number;
  }
  figure.program += blocks + "plot " + curves;
  figure.caption =
      "Samples/s against the number of ranks, with 95 % intervals where they are known; dashed: one rank's "
      "rate × ranks.";
  return figure;
}

Figure efficiency(const Panel& panel) {
  Figure figure;
  figure.title = "Scaling efficiency: " + panel_title(panel.config);
  figure.program =
      axes(panel) + "set ylabel 'percent of one rank × ranks'\n" +
      (panel.most_ranks >= 8 ? fmt::format("set logscale x 2\nset xrange [0.9:{}]\n", panel.most_ranks * 1.2)
                             : fmt::format("set xrange [0.8:{}]\n", panel.most_ranks + 0.2));
  double highest = 0;
  std::string blocks, curves = "100 with lines dashtype 2 linecolor rgb '#888888' title 'ideal'";
  int number = 0;
  for (const auto& [name, line] : panel.lines) {
    blocks += fmt::format("$line{} << END\n", number);
    for (const auto& [ranks, group] : line)
      if (group->efficiency) {
        blocks += fmt::format("{} {:.9g}\n", ranks, 100 * *group->efficiency);
        highest = std::max(highest, 100 * *group->efficiency);
      }
    blocks += "END\n";
    curves += fmt::format(", $line{} using 1:2 with linespoints linewidth 1.5 title {}", number, gnuplot_quoted(name));
    ++number;
  }
  figure.program += fmt::format("set yrange [0:{:.0f}]\n", std::max(110.0, highest * 1.05)) + blocks + "plot " + curves;
  figure.caption = "Speed-up over one rank, divided by the number of ranks.";
  return figure;
}

}  // namespace

void add_scaling_figures(const std::vector<Group>& groups, std::vector<Figure>& figures,
                         std::vector<std::string>& notes) {
  const std::vector<Panel> panels = panels_of(groups);
  for (std::size_t i = 0; i < std::min(panels.size(), kMostPanels); ++i) {
    figures.push_back(throughput(panels[i]));
    figures.back().id = fmt::format("throughput-{}", i + 1);
    if (panels[i].baseline <= 0) continue;
    figures.push_back(efficiency(panels[i]));
    figures.back().id = fmt::format("efficiency-{}", i + 1);
  }
  if (panels.size() > kMostPanels)
    notes.push_back(fmt::format("{} of {} figures of throughput are drawn; report fewer runs to see others",
                                kMostPanels, panels.size()));
}

}  // namespace tutti
