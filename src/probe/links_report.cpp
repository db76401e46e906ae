#include "probe/links_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/build_info.h"

namespace tutti {
namespace {

std::string readable_size(int64_t bytes) {
  if (bytes >= 1 << 20 && bytes % (1 << 20) == 0) return fmt::format("{} MB", bytes >> 20);
  if (bytes >= 1 << 10 && bytes % (1 << 10) == 0) return fmt::format("{} KB", bytes >> 10);
  return fmt::format("{} B", bytes);
}

std::string readable_time(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.1f} µs", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.2f} ms", seconds * 1e3);
  return fmt::format("{:.2f} s", seconds);
}

}  // namespace

std::string sparkline(const std::vector<double>& values) {
  static const char* const kBars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  const double largest = values.empty() ? 0 : *std::max_element(values.begin(), values.end());
  std::string text;
  for (const double value : values)
    text += kBars[largest > 0 ? std::clamp(static_cast<int>(std::ceil(value / largest * 8)) - 1, 0, 7) : 0];
  return text;
}

std::string describe(const ProbedLevel& level) {
  const auto ranks = static_cast<int>(level.ranks.size());
  const std::string where = level.name == "node"    ? "inside a node"
                            : level.name == "nodes" ? "between nodes, one rank of each"
                                                    : "all ranks";
  std::string text = fmt::format("{}: {} ranks over {}; two of them exchange {:.3g} GB/s ({:.3g} Gbit/s)\n\n", where,
                                 ranks, level.transport, level.link_bytes_per_s * 1e-9, level.link_bytes_per_s * 8e-9);
  text += fmt::format("{:<15} {:>8} {:>11} {:>9} {:>6} {:>11} {:>11} {:>11} {:>8}\n", "operation", "size", "median",
                      "spread", "runs", "algbw GB/s", "busbw GB/s", "ring bound", "reached");
  for (const ProbedOp& op : level.ops) {
    for (const ProbePoint& point : op.points) {
      const double bound_s = ring_bound_s(level, op.op, point.bytes);
      const double half_spread = point.median_s > 0 ? (point.upper_s - point.lower_s) / 2 / point.median_s : 0;
      text +=
          fmt::format("{:<15} {:>8} {:>11} {:>9} {:>6} {:>11.3f} {:>11.3f} {:>11} {:>8}\n", name_of(op.op),
                      readable_size(point.bytes), readable_time(point.median_s),
                      fmt::format("± {:.0f} %", half_spread * 100), point.count, point.bytes_per_s() * 1e-9,
                      point.bytes_per_s() * bus_factor(op.op, ranks) * 1e-9, bound_s > 0 ? readable_time(bound_s) : "-",
                      bound_s > 0 ? fmt::format("{:.0f} %", bound_s / point.median_s * 100) : "-");
    }
  }
  text += fmt::format("\n{:<15} {:>11} {:>12} {:>11} {:>9}   {}\n", "fitted cost", "start-up", "per byte", "that is",
                      "residual", "busbw over sizes");
  for (const ProbedOp& op : level.ops) {
    std::vector<double> bandwidths;
    for (const ProbePoint& point : op.points) bandwidths.push_back(point.bytes_per_s());
    const double per_byte_s = op.cost.per_byte_s;
    text += fmt::format("{:<15} {:>11} {:>12} {:>11} {:>9}   {}\n", name_of(op.op), readable_time(op.cost.startup_s),
                        fmt::format("{:.4f} ns", per_byte_s * 1e9),
                        per_byte_s > 0 ? fmt::format("{:.3g} GB/s", 1e-9 / per_byte_s) : "-",
                        fmt::format("{:.0f} %", op.cost.residual * 100), sparkline(bandwidths));
  }
  return text;
}

nlohmann::json to_json(const LinksReport& report) {
  nlohmann::json json = {{"format", "tutti-links-1"},     {"kind", "measured"},
                         {"date", report.date},           {"seconds", report.seconds},
                         {"steal_percent", report.steal}, {"transport", report.transport},
                         {"tutti", build_version()},      {"commit", build_commit()},
                         {"build_type", build_type()},    {"ranks", report.ranks},
                         {"pairs", report.pairs},         {"levels", report.levels}};
  for (const Node& node : report.nodes) json["nodes"].push_back({{"host", node.host}, {"ranks", node.ranks}});
  for (const ProbedLevel& level : report.levels)
    for (const ProbedOp& op : level.ops)
      if (op.op == ProbeOp::all_reduce) json["all_reduce"] = op.cost;  // the widest level is the last
  return json;
}

}  // namespace tutti
