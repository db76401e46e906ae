#pragma once

#include <string>
#include <utility>
#include <vector>

namespace tutti {

// What the figures of a report are drawn with: programs for gnuplot. Texts may hold anything. Pictures are small with
// large letters, so that they can be read on a phone.

constexpr int kChartWidth = 480, kChartHeight = 360;

struct ChartPoint {
  double x = 0, y = 0;
  double half = 0;  // of an interval around y; 0: none
};

struct ChartLine {
  std::string name;  // stands beside its end
  std::vector<ChartPoint> points;
  bool is_dashed = false;  // grey, for what is only to be compared with
};

struct LineChart {
  std::string x_label, y_label;
  std::vector<ChartLine> lines;
  std::vector<double> x_marks;  // values that the x axis names; empty: round ones
  bool x_is_log = false, y_is_log = false;
  bool y_has_zero = false;
};
/// At most eight numbers stand at an axis.
std::string chart_program(const LineChart& chart);

struct ChartBar {
  std::string name;
  std::vector<double> parts;  // from left to right
  double half = 0;            // of an interval around the sum; 0: none
};

/// Bars that lie, so that names of any length can be read.
struct BarChart {
  std::string x_label;
  std::vector<std::string> parts;  // their names; a single one needs none
  std::vector<ChartBar> bars;      // from the top
  double mark = 0;                 // a dashed line, and what it is; 0: none
  std::string mark_name;
};
std::string chart_program(const BarChart& chart);
int chart_height(const BarChart& chart);

/// Round numbers from `low` to `high`, at most `most`; of a logarithmic axis, 1, 2 and 5 times powers of ten.
std::vector<double> axis_marks(double low, double high, bool is_log, std::size_t most = 7);

/// Of these, at most `most` that are spread evenly; the last is among them.
std::vector<double> thinned(const std::vector<double>& marks, std::size_t most = 8);

/// Where labels at these heights (0 to 1) can stand without covering each other, `gap` apart, in the same order from
/// bottom to top.
std::vector<double> spread_labels(const std::vector<double>& heights, double gap);

}  // namespace tutti
