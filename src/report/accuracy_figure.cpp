#include <fmt/format.h>

#include <algorithm>

#include "base/gnuplot.h"
#include "report/figures.h"

namespace tutti {
namespace {

constexpr std::size_t kMostCurves = 12;

}  // namespace

void add_accuracy_figure(const std::vector<Group>& groups, std::vector<Figure>& figures,
                         std::vector<std::string>& notes) {
  std::vector<const Group*> shown;
  std::vector<std::string> blocks;
  double longest_s = 0;
  std::size_t left_out = 0;
  for (const Group& group : groups) {
    if (group.cells.empty()) continue;
    double at_s = 0;
    std::string points;
    for (const EpochTimes& epoch : group.cells.front()->epochs) {
      if (!epoch.train_s) break;
      at_s += *epoch.train_s;
      if (epoch.test_accuracy) points += fmt::format("{:.9g} {:.9g}\n", at_s, *epoch.test_accuracy);
    }
    if (points.empty()) continue;
    if (shown.size() == kMostCurves) {
      ++left_out;
      continue;
    }
    shown.push_back(&group);
    blocks.push_back(std::move(points));
    longest_s = std::max(longest_s, at_s);
  }
  if (shown.empty()) return;
  if (left_out > 0) notes.push_back(fmt::format("{} more configurations are not in the figure of accuracy", left_out));
  const std::vector<std::string> labels = short_labels(shown);
  const bool in_hours = longest_s > 7200;
  Figure figure;
  figure.id = "accuracy";
  figure.title = "Test accuracy against training time";
  figure.caption = "After each epoch; the first run of each configuration.";
  figure.program = fmt::format(
      "set grid\nset key outside right noenhanced\nset xlabel '{} of training'\nset ylabel 'test accuracy'\n"
      "set xrange [0:*]\n",
      in_hours ? "hours" : "seconds");
  std::string curves;
  for (std::size_t i = 0; i < shown.size(); ++i) {
    figure.program += fmt::format("$line{} << END\n{}END\n", i, blocks[i]);
    curves +=
        fmt::format("{}$line{} using ($1/{}):2 with linespoints linewidth 1.5 title {}", i == 0 ? "" : ", ", i,
                    in_hours ? 3600 : 1, gnuplot_quoted(fmt::format("{} ({})", labels[i], word(shown[i]->source))));
  }
  figure.program += "plot " + curves;
  figures.push_back(std::move(figure));
}

}  // namespace tutti
