#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "report/charts.h"
#include "report/groups.h"

namespace tutti {

/// A picture, as a program of gnuplot's without its output.
struct Figure {
  std::string id, title, caption;
  std::string program;
  LineChart curves;  // which a page draws by itself; without lines: none
  int width = kChartWidth, height = kChartHeight;
};

/// What can be drawn of the groups: strategies × networks, the parts of a step, throughput against ranks with the ideal
/// line, efficiency, accuracy against time, loss. Few of a kind; `notes` says how many were left out.
std::vector<Figure> make_figures(const std::vector<Group>& groups, std::vector<std::string>& notes);

// One kind per file.
void add_scaling_figures(const std::vector<Group>& groups, std::vector<Figure>& figures,
                         std::vector<std::string>& notes);
void add_step_parts_figure(const std::vector<Group>& groups, std::vector<Figure>& figures,
                           std::vector<std::string>& notes);
void add_accuracy_figure(const std::vector<Group>& groups, std::vector<Figure>& figures,
                         std::vector<std::string>& notes);
void add_loss_figure(const std::vector<Group>& groups, std::vector<Figure>& figures, std::vector<std::string>& notes);
void add_heat_maps(const std::vector<Group>& groups, std::vector<Figure>& figures, std::vector<std::string>& notes);

/// Draws them to `folder`/ID.svg and ID.png. False where there is no gnuplot; throws Error when it fails.
bool draw_figures(const std::vector<Figure>& figures, const std::filesystem::path& folder);

/// "resnet50, batch 64, 10gbe": what all of a figure have in common, without settings that are as usual.
std::string panel_title(const Configuration& config);

/// What labels of several groups need to say: only settings in which they differ.
std::vector<std::string> short_labels(const std::vector<const Group*>& groups);

/// More in one figure cover each other.
constexpr std::size_t kMostCurves = 8;
/// Names of curves: of runs where they have names, else what differs; with their source where there are several.
std::vector<std::string> curve_names(const std::vector<const Group*>& groups);

}  // namespace tutti
