#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "report/charts.h"
#include "report/figures.h"

namespace tutti {

void add_accuracy_figure(const std::vector<Group>& groups, std::vector<Figure>& figures,
                         std::vector<std::string>& notes) {
  std::vector<const Group*> shown;
  LineChart chart;
  double longest_s = 0;
  std::size_t left_out = 0;
  for (const Group& group : groups) {
    if (group.cells.empty()) continue;
    double at_s = 0;
    ChartLine line;
    for (const EpochTimes& epoch : group.cells.front()->epochs) {
      if (!epoch.train_s) break;
      at_s += *epoch.train_s;
      if (epoch.test_accuracy) line.points.push_back({at_s, *epoch.test_accuracy, 0});
    }
    if (line.points.size() < 2) continue;  // a dot is no curve, and the table of epochs has it
    if (shown.size() == kMostCurves) {
      ++left_out;
      continue;
    }
    shown.push_back(&group);
    chart.lines.push_back(std::move(line));
    longest_s = std::max(longest_s, at_s);
  }
  if (shown.empty()) return;
  if (left_out > 0) notes.push_back(fmt::format("{} more configurations are not in the figure of accuracy", left_out));
  const bool in_hours = longest_s > 7200;
  const std::vector<std::string> names = curve_names(shown);
  for (std::size_t i = 0; i < chart.lines.size(); ++i) {
    chart.lines[i].name = names[i];
    for (ChartPoint& point : chart.lines[i].points) point.x /= in_hours ? 3600 : 1;
  }
  chart.x_label = in_hours ? "hours of training" : "seconds of training";
  chart.y_label = "test accuracy";
  Figure figure;
  figure.id = "accuracy";
  figure.title = "Test accuracy against training time";
  figure.caption = "After each epoch; the first run of each configuration.";
  figure.program = chart_program(chart);
  figure.curves = std::move(chart);
  figures.push_back(std::move(figure));
}

}  // namespace tutti
