#include "report/charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/gnuplot.h"
#include "base/utf8.h"
#include "report/table.h"

namespace tutti {
namespace {

constexpr std::size_t kLongestName = 22;  // characters beside a chart
constexpr double kLabelGap = 0.075;       // the height of a line of text, of a chart's
constexpr int kBarHeight = 34, kNameHeight = 24;

struct AxisRange {
  double low = 0, high = 1;
};

AxisRange range_of(const LineChart& chart, bool is_y) {
  AxisRange range{INFINITY, -INFINITY};
  for (const ChartLine& line : chart.lines)
    for (const ChartPoint& point : line.points) {
      const double value = is_y ? point.y : point.x, half = is_y ? point.half : 0;
      range.low = std::min(range.low, value - half);
      range.high = std::max(range.high, value + half);
    }
  if (!std::isfinite(range.low) || !std::isfinite(range.high)) return {};
  const bool is_log = is_y ? chart.y_is_log : chart.x_is_log;
  if (is_log) {
    // An interval may reach to nothing, which has no place here.
    double least = INFINITY;
    for (const ChartLine& line : chart.lines)
      for (const ChartPoint& point : line.points) least = std::min(least, is_y ? point.y : point.x);
    range.low = std::max(range.low, least / 4);
    return {range.low / 1.15, range.high * 1.15};
  }
  const double pad =
      range.high > range.low ? 0.05 * (range.high - range.low) : std::max(1e-9, 0.05 * std::abs(range.high));
  if (is_y && chart.y_has_zero) return {0, range.high + pad};
  return {range.low - pad, range.high + pad};
}

double share_of(double value, const AxisRange& range, bool is_log) {
  if (is_log) return std::log(value / range.low) / std::log(range.high / range.low);
  return (value - range.low) / (range.high - range.low);
}

std::string marks_text(const char* axis, const std::vector<double>& marks) {
  std::string text = fmt::format("set {}tics (", axis);
  for (const double mark : marks)
    text += fmt::format("{}{} {:.9g}", text.back() == '(' ? "" : ", ", gnuplot_tic_label(fmt::format("{:.6g}", mark)),
                        mark);
  return text + ") noenhanced\n";
}

std::string short_name(const std::string& name) { return cut_text(name, kLongestName); }

std::size_t wider(std::size_t most, const std::string& name) {
  return std::max(most, std::min(kLongestName, display_width(name)));
}

/// The names of lines beside their ends, and the room that they need.
std::string line_names(const LineChart& chart, const AxisRange& range) {
  std::vector<std::size_t> order(chart.lines.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto height = [&](std::size_t i) { return share_of(chart.lines[i].points.back().y, range, chart.y_is_log); };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return height(a) < height(b); });
  std::vector<double> heights;
  std::size_t width = 0;
  for (const std::size_t i : order) {
    heights.push_back(height(i));
    width = wider(width, chart.lines[i].name);
  }
  heights = spread_labels(heights, kLabelGap);
  std::string text = fmt::format("unset key\nset rmargin {:.1f}\n", 0.85 * static_cast<double>(width) + 2);
  for (std::size_t place = 0; place < order.size(); ++place) {
    const ChartLine& line = chart.lines[order[place]];
    text += fmt::format("set label {} at graph 1.02, graph {:.4f} noenhanced textcolor {}\n",
                        gnuplot_quoted(short_name(line.name)), heights[place],
                        line.is_dashed ? "rgb '#666666'" : fmt::format("linetype {}", order[place] + 1));
  }
  return text;
}

std::size_t rows_of_names(const BarChart& chart) {
  const std::size_t names = (chart.parts.size() > 1 ? chart.parts.size() : 0) + (chart.mark > 0 ? 1 : 0);
  return (names + 1) / 2;
}

/// What the colours of bars mean, above them in two columns: gnuplot's own key puts long names below each other.
std::string names_of_parts(const BarChart& chart) {
  const double height = chart_height(chart);
  std::string text = fmt::format("unset key\nset tmargin at screen {:.4f}\n",
                                 1 - (10 + kNameHeight * static_cast<double>(rows_of_names(chart))) / height);
  std::size_t place = 0;
  const auto add = [&](const std::string& sign, const std::string& name, const std::string& colour) {
    const std::size_t row = place / 2;
    text += fmt::format("set label {} at screen {:.2f}, screen {:.4f} noenhanced textcolor {}\n",
                        gnuplot_quoted(sign + " " + name), place % 2 == 0 ? 0.04 : 0.52,
                        1 - (14 + kNameHeight * static_cast<double>(row)) / height, colour);
    ++place;
  };
  if (chart.parts.size() > 1)
    for (std::size_t i = 0; i < chart.parts.size(); ++i) add("■", chart.parts[i], fmt::format("linetype {}", i + 1));
  if (chart.mark > 0) add("┆", chart.mark_name, "rgb '#666666'");
  return text;
}

}  // namespace

std::vector<double> axis_marks(double low, double high, bool is_log, std::size_t most) {
  std::vector<double> marks;
  if (!(high > low) || !std::isfinite(high - low)) return marks;
  if (is_log) {
    for (double power = std::pow(10, std::floor(std::log10(low))); power <= high; power *= 10)
      for (const double factor : {1.0, 2.0, 5.0})
        if (power * factor >= low && power * factor <= high) marks.push_back(power * factor);
    return thinned(marks, most);
  }
  double step = std::pow(10, std::floor(std::log10((high - low) / static_cast<double>(most))));
  for (const double factor : {2.0, 2.5, 2.0})  // 2, 5, 10 times the power
    if ((high - low) / step > static_cast<double>(most) - 1) step *= factor;
  for (double mark = std::ceil(low / step - 1e-9) * step; mark <= high + step * 1e-9; mark += step)
    marks.push_back(std::abs(mark) < step * 1e-6 ? 0 : mark);
  return marks;
}

std::vector<double> thinned(const std::vector<double>& marks, std::size_t most) {
  if (marks.size() <= most) return marks;
  const std::size_t stride = (marks.size() + most - 1) / most;
  std::vector<double> kept;
  for (std::size_t i = (marks.size() - 1) % stride; i < marks.size(); i += stride) kept.push_back(marks[i]);
  return kept;
}

std::vector<double> spread_labels(const std::vector<double>& heights, double gap) {
  std::vector<double> result = heights;
  for (std::size_t i = 0; i < result.size(); ++i) {
    result[i] = std::clamp(result[i], 0.0, 1.0);
    if (i > 0) result[i] = std::max(result[i], result[i - 1] + gap);
  }
  double top = 1;
  for (std::size_t i = result.size(); i-- > 0; top = result[i] - gap) result[i] = std::min(result[i], top);
  return result;
}

std::string chart_program(const LineChart& chart) {
  const AxisRange x = range_of(chart, false), y = range_of(chart, true);
  std::string text = fmt::format("set grid\nset xlabel {} noenhanced\nset ylabel {} noenhanced\n",
                                 gnuplot_quoted(chart.x_label), gnuplot_quoted(chart.y_label));
  if (chart.x_is_log) text += "set logscale x\n";
  if (chart.y_is_log) text += "set logscale y\n";
  text += fmt::format("set xrange [{:.9g}:{:.9g}]\nset yrange [{:.9g}:{:.9g}]\n", x.low, x.high, y.low, y.high);
  text +=
      marks_text("x", chart.x_marks.empty() ? axis_marks(x.low, x.high, chart.x_is_log, 6) : thinned(chart.x_marks));
  text += marks_text("y", axis_marks(y.low, y.high, chart.y_is_log)) + line_names(chart, y);
  std::string curves;
  for (std::size_t i = 0; i < chart.lines.size(); ++i) {
    const ChartLine& line = chart.lines[i];
    text += fmt::format("$line{} << END\n", i);
    bool has_intervals = false;
    for (const ChartPoint& point : line.points) {
      text += fmt::format("{:.9g} {:.9g} {:.9g}\n", point.x, point.y, point.half);
      has_intervals = has_intervals || point.half > 0;
    }
    text += "END\n";
    const char* const look = line.is_dashed  ? "using 1:2 with lines dashtype 2 linecolor rgb '#888888'"
                             : has_intervals ? "using 1:2:3 with yerrorlines linewidth 2 pointtype 7 pointsize 0.5"
                             : line.points.size() > 20
                                 ? "using 1:2 with lines linewidth 2"
                                 : "using 1:2 with linespoints linewidth 2 pointtype 7 pointsize 0.5";
    curves += fmt::format("{}$line{} {}{}", curves.empty() ? "" : ", ", i, look,
                          line.is_dashed ? "" : fmt::format(" linetype {}", i + 1));
  }
  return text + "plot " + curves;
}

int chart_height(const BarChart& chart) {
  return 80 + kNameHeight * static_cast<int>(rows_of_names(chart)) + kBarHeight * static_cast<int>(chart.bars.size());
}

std::string chart_program(const BarChart& chart) {
  double largest = chart.mark;
  for (const ChartBar& bar : chart.bars)
    largest = std::max(largest, std::accumulate(bar.parts.begin(), bar.parts.end(), 0.0) + bar.half);
  const double high = largest > 0 ? largest * 1.05 : 1;
  const auto count = static_cast<double>(chart.bars.size());
  std::string text = fmt::format(
      "set grid x\nset xlabel {} noenhanced\nset xrange [0:{:.9g}]\nset yrange [{}:-0.5]\nset style fill solid 0.85\n",
      gnuplot_quoted(chart.x_label), high, count - 0.5);
  text += names_of_parts(chart);
  text += marks_text("x", axis_marks(0, high, false, 6)) + "set ytics (";
  for (std::size_t i = 0; i < chart.bars.size(); ++i)
    text += fmt::format("{}{} {}", i == 0 ? "" : ", ", gnuplot_tic_label(short_name(chart.bars[i].name)), i);
  text += ") noenhanced scale 0\n$bars << END\n";
  bool has_intervals = false;
  for (std::size_t i = 0; i < chart.bars.size(); ++i) {
    // A row: its place, where each part begins and ends, the interval.
    double at = 0;
    text += fmt::format("{}", i);
    for (const double part : chart.bars[i].parts) {
      text += fmt::format(" {:.9g} {:.9g}", at, at + part);
      at += part;
    }
    text += fmt::format(" {:.9g} {:.9g}\n", at, chart.bars[i].half);
    has_intervals = has_intervals || chart.bars[i].half > 0;
  }
  text += "END\n";
  const std::size_t parts = chart.bars.empty() ? 0 : chart.bars.front().parts.size();
  std::string plots;
  for (std::size_t part = 0; part < parts; ++part) {
    const std::size_t from = 2 + 2 * part;
    plots += fmt::format("{}$bars using (${}):1:{}:{}:($1-0.35):($1+0.35) with boxxyerror linetype {} {}",
                         plots.empty() ? "" : ", ", from, from, from + 1, part + 1, "notitle");
  }
  if (has_intervals)
    plots +=
        fmt::format(", $bars using {}:1:{} with xerrorbars linecolor rgb 'black' linewidth 1.5 pointtype 0 notitle",
                    2 + 2 * parts, 3 + 2 * parts);
  if (chart.mark > 0) {
    text += fmt::format("$mark << END\n{0:.9g} -0.5\n{0:.9g} {1}\nEND\n", chart.mark, count - 0.5);
    plots += fmt::format(", $mark using 1:2 with lines dashtype 2 linewidth 1.5 linecolor rgb '#666666' notitle");
  }
  return text + "plot " + plots;
}

}  // namespace tutti
