#include "report/figures.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/gnuplot.h"

namespace tutti {
namespace {

/// Colours that are told apart on white, on paper and by most eyes; gnuplot's own have a yellow.
std::string colours() {
  std::string text;
  int number = 0;
  for (const char* colour :
       {"#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#8c564b", "#e377c2", "#7f7f7f", "#bcbd22"})
    text += fmt::format("set linetype {} linecolor rgb '{}'\n", ++number, colour);
  return text;
}

}  // namespace

std::vector<Figure> make_figures(const std::vector<Group>& groups, std::vector<std::string>& notes) {
  std::vector<Figure> figures;
  add_heat_maps(groups, figures, notes);
  add_step_parts_figure(groups, figures, notes);
  add_scaling_figures(groups, figures, notes);
  add_accuracy_figure(groups, figures, notes);
  add_loss_figure(groups, figures, notes);
  return figures;
}

bool draw_figures(const std::vector<Figure>& figures, const std::filesystem::path& folder) {
  std::string program;
  for (const Figure& figure : figures)
    for (const char* kind : {"svg", "png"}) {
      const bool is_svg = std::string(kind) == "svg";
      // Named, so that several figures in one page have different identifiers.
      std::string name = figure.id;
      std::replace(name.begin(), name.end(), '-', '_');
      program += "reset session\n" + colours();
      program += is_svg ? fmt::format("set terminal svg size {},{} font 'sans,15' background 'white' name '{}'\n",
                                      figure.width, figure.height, name)
                        : fmt::format("set terminal pngcairo size {},{} font 'sans,11' fontscale 2 linewidth 2\n",
                                      2 * figure.width, 2 * figure.height);
      // Without a title: the page and the Markdown have it above the picture.
      program += fmt::format("set output {}\n{}\nunset output\n", gnuplot_file(folder / (figure.id + "." + kind)),
                             figure.program);
    }
  return draw_with_gnuplot(program);
}

std::vector<std::string> short_labels(const std::vector<const Group*>& groups) {
  const auto all_same = [&groups](auto get) {
    return std::all_of(groups.begin(), groups.end(),
                       [&](const Group* group) { return get(group->config) == get(groups[0]->config); });
  };
  using C = Configuration;
  const bool same_model = all_same([](const C& c) { return c.model; });
  const bool same_data = all_same([](const C& c) { return c.data; });
  const bool same_batch = all_same([](const C& c) { return c.batch; });
  const bool same_network = all_same([](const C& c) { return c.network; });
  const bool same_transport = all_same([](const C& c) { return c.transport; });
  const bool are_several = groups.size() > 1;  // of a single one something has to be said
  const bool same_strategy = are_several && all_same([](const C& c) { return c.strategy; });
  const bool same_ranks = are_several && all_same([](const C& c) { return c.ranks; });
  const bool same_nodes = all_same([](const C& c) { return c.nodes; });
  const bool same_wire = all_same([](const C& c) { return c.wire; });
  const bool same_precision = all_same([](const C& c) { return c.precision; });
  const bool same_device = all_same([](const C& c) { return c.device; });
  const bool same_workers = all_same([](const C& c) { return c.workers; });
  const bool same_servers = all_same([](const C& c) { return c.servers; });
  const bool same_other = all_same([](const C& c) { return c.further(); });
  std::vector<std::string> labels;
  for (const Group* group : groups) {
    C config = group->config;
    if (same_model) config.model.clear();
    if (same_data) config.data.clear();
    if (same_batch) config.batch = 0;
    if (same_network) config.network.clear();
    if (same_transport) config.transport.clear();
    if (same_strategy) config.strategy.clear();
    if (same_ranks) config.ranks = 0;
    if (same_nodes) config.nodes = 0;
    if (same_wire) config.wire.clear();
    if (same_precision) config.precision.clear();
    if (same_device) config.device.clear();
    if (same_workers) config.workers = -1;
    if (same_servers) config.servers = -1;
    if (same_other) config.other.clear(), config.by_name.clear();
    labels.push_back(describe(config));
  }
  return labels;
}

std::vector<std::string> curve_names(const std::vector<const Group*>& groups) {
  std::vector<std::string> names = short_labels(groups);
  const bool has_one_source =
      std::all_of(groups.begin(), groups.end(), [&](const Group* group) { return group->source == groups[0]->source; });
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const std::string& run = groups[i]->cells.front()->run;
    if (!run.empty()) names[i] = run;
    if (!has_one_source) names[i] += fmt::format(" ({})", word(groups[i]->source));
  }
  return names;
}

std::string panel_title(const Configuration& config) {
  Configuration shown = config;
  shown.workers = -1;
  if (shown.device == "gpu" || shown.device == "cpu") shown.device.clear();
  if (shown.transport == "auto") shown.transport.clear();
  return describe(shown);
}

}  // namespace tutti
