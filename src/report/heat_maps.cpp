#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "base/gnuplot.h"
#include "report/figures.h"
#include "report/table.h"

namespace tutti {
namespace {

constexpr std::size_t kMostMaps = 6;
constexpr std::size_t kLongestNameOfMap = 24;
constexpr std::size_t kLettersBelowMap = 30;

/// A tic's label of several lines.
std::string lines_label(const std::string& text) {
  std::string label;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::string quoted = gnuplot_tic_label(line);
    label += (label.empty() ? "" : "\\n") + quoted.substr(1, quoted.size() - 2);
  }
  return '"' + label + '"';
}

}  // namespace

void add_heat_maps(const std::vector<Group>& groups, std::vector<Figure>& figures, std::vector<std::string>& notes) {
  struct Map {
    Source source = Source::measured;
    Configuration shared;
    std::map<int, std::map<std::pair<std::string, std::string>, const Group*>> by_ranks;  // (strategy, network)
  };
  std::vector<Map> maps;
  std::map<std::string, std::size_t> places;
  for (const Group& group : groups) {
    if (group.rate.n == 0 || group.config.ranks < 2 || group.config.strategy.empty() || group.config.network.empty())
      continue;
    Configuration shared = group.config;
    shared.strategy.clear();
    shared.network.clear();
    shared.ranks = shared.nodes = 0;
    shared.servers = -1;
    const auto [place, is_new] =
        places.emplace(fmt::format("{}\x1f{}", word(group.source), key_of(shared)), maps.size());
    if (is_new) maps.push_back({group.source, shared, {}});
    maps[place->second].by_ranks[group.config.ranks][{group.config.strategy, group.config.network}] = &group;
  }
  std::size_t drawn = 0, left_out = 0;
  for (const Map& map : maps) {
    if (map.by_ranks.empty()) continue;
    const auto& [ranks, cells] = *map.by_ranks.rbegin();  // the most ranks
    std::vector<std::string> strategies, networks;        // in order of appearance
    for (const Group& group : groups) {
      const auto found = cells.find({group.config.strategy, group.config.network});
      if (found == cells.end() || found->second != &group) continue;
      if (std::find(strategies.begin(), strategies.end(), group.config.strategy) == strategies.end())
        strategies.push_back(group.config.strategy);
      if (std::find(networks.begin(), networks.end(), group.config.network) == networks.end())
        networks.push_back(group.config.network);
    }
    if (strategies.size() < 2 || networks.size() < 2) continue;
    if (drawn == kMostMaps) {
      ++left_out;
      continue;
    }
    const bool has_efficiency =
        std::all_of(cells.begin(), cells.end(), [](const auto& cell) { return cell.second->efficiency.has_value(); });
    Figure figure;
    figure.id = fmt::format("strategies-networks-{}", ++drawn);
    figure.title = fmt::format("{} of strategies on networks: {}, {} ranks ({})",
                               has_efficiency ? "Scaling efficiency" : "Samples/s", panel_title(map.shared), ranks,
                               word(map.source));
    figure.caption = has_efficiency ? "Percent of one rank's rate × ranks." : "Samples/s.";
    figure.height = 110 + 34 * static_cast<int>(strategies.size());
    figure.program = "$map << END\n";
    for (std::size_t y = 0; y < strategies.size(); ++y)
      for (std::size_t x = 0; x < networks.size(); ++x)
        if (const auto found = cells.find({strategies[y], networks[x]}); found != cells.end())
          figure.program += fmt::format("{} {} {:.9g}\n", x, y,
                                        has_efficiency ? 100 * *found->second->efficiency : found->second->rate.mean);
    figure.program += "END\nset xtics (";
    int most_lines = 1;
    for (std::size_t x = 0; x < networks.size(); ++x) {
      // Long names would cover each other.
      const std::string name = wrapped(networks[x], kLettersBelowMap / networks.size());
      most_lines = std::max(most_lines, 1 + static_cast<int>(std::count(name.begin(), name.end(), '\n')));
      figure.program += fmt::format("{}{} {}", x == 0 ? "" : ", ", lines_label(name), x);
    }
    figure.program += fmt::format(") noenhanced\nset bmargin {}\nset ytics (", most_lines + 0.5);
    figure.height += 18 * (most_lines - 1);
    for (std::size_t y = 0; y < strategies.size(); ++y)
      figure.program +=
          fmt::format("{}{} {}", y == 0 ? "" : ", ", gnuplot_tic_label(cut_text(strategies[y], kLongestNameOfMap)), y);
    // Light colours only, so that black figures can be read on all of them.
    figure.program += fmt::format(
        ") noenhanced\nset xrange [-0.5:{}]\nset yrange [{}:-0.5]\nset cblabel '{}'\n"
        "set palette defined (0 '#f4a582', 1 '#fddbc7', 2 '#f7f7f7', 3 '#d1e5f0', 4 '#92c5de')\n"
        "set tics scale 0\nunset colorbox\nunset key\n"
        "plot $map using 1:2:(0.5):(0.5):3 with boxxyerror fillstyle solid 1.0 linecolor palette, $map using "
        "1:2:(sprintf('{}', $3)) with labels",
        static_cast<double>(networks.size()) - 0.5, static_cast<double>(strategies.size()) - 0.5,
        has_efficiency ? "%" : "samples/s", has_efficiency ? "%.1f %%" : "%.0f");
    figures.push_back(std::move(figure));
  }
  if (left_out > 0) notes.push_back(fmt::format("{} more maps of strategies on networks are not drawn", left_out));
}

}  // namespace tutti
