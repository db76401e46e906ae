#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "report/charts.h"
#include "report/figures.h"

namespace tutti {
namespace {

constexpr std::size_t kMostPoints = 400;  // of a curve; more are thinned out

/// Training loss by step: as it was recorded every so many steps, else of whole epochs.
std::vector<ChartPoint> loss_of(const Cell& cell) {
  std::vector<ChartPoint> by_step, by_epoch;
  const auto epochs = static_cast<double>(cell.epochs.size());
  for (const EpochTimes& epoch : cell.epochs) {
    for (const RateAtStep& rate : epoch.rates)
      if (rate.loss && std::isfinite(*rate.loss)) by_step.push_back({static_cast<double>(rate.step), *rate.loss, 0});
    if (epoch.loss && std::isfinite(*epoch.loss))
      by_epoch.push_back(
          {static_cast<double>(cell.steps) * static_cast<double>(by_epoch.size() + 1) / epochs, *epoch.loss, 0});
  }
  std::vector<ChartPoint> points = by_step.size() > 1 ? by_step : by_epoch;
  if (points.size() <= kMostPoints) return points;
  std::vector<ChartPoint> fewer;
  const std::size_t stride = (points.size() + kMostPoints - 1) / kMostPoints;
  for (std::size_t i = (points.size() - 1) % stride; i < points.size(); i += stride) fewer.push_back(points[i]);
  return fewer;
}

}  // namespace

void add_loss_figure(const std::vector<Group>& groups, std::vector<Figure>& figures, std::vector<std::string>& notes) {
  std::vector<const Group*> shown;
  LineChart chart;
  std::size_t left_out = 0;
  for (const Group& group : groups) {
    if (group.cells.empty()) continue;
    ChartLine line;
    line.points = loss_of(*group.cells.front());
    if (line.points.size() < 2) continue;
    if (shown.size() == kMostCurves) {
      ++left_out;
      continue;
    }
    shown.push_back(&group);
    chart.lines.push_back(std::move(line));
  }
  if (shown.empty()) return;
  if (left_out > 0) notes.push_back(fmt::format("{} more configurations are not in the figure of loss", left_out));
  // Steps of different sizes are not alike: samples are.
  const auto samples_of_step = [](const Group* group) { return group->cells.front()->samples_per_step; };
  const bool by_samples =
      std::all_of(shown.begin(), shown.end(), [&](auto* group) { return samples_of_step(group) > 0; }) &&
      std::any_of(shown.begin(), shown.end(),
                  [&](auto* group) { return samples_of_step(group) != samples_of_step(shown[0]); });
  const std::vector<std::string> names = curve_names(shown);
  for (std::size_t i = 0; i < chart.lines.size(); ++i) {
    chart.lines[i].name = names[i];
    for (ChartPoint& point : chart.lines[i].points) point.x *= by_samples ? samples_of_step(shown[i]) : 1;
  }
  chart.x_label = by_samples ? "samples" : "steps";
  chart.y_label = "training loss";
  Figure figure;
  figure.id = "loss";
  figure.title = by_samples ? "Training loss against samples" : "Training loss against steps";
  figure.caption =
      "Of rank 0's samples where steps were recorded, else of epochs; the first run of each configuration.";
  figure.program = chart_program(chart);
  figure.curves = std::move(chart);
  figures.push_back(std::move(figure));
}

}  // namespace tutti
