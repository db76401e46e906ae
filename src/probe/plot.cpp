#include <fmt/format.h>

#include "base/gnuplot.h"
#include "probe/links_report.h"

namespace tutti {

std::string gnuplot_program(const std::vector<ProbedLevel>& levels, const std::filesystem::path& file) {
  std::string program = file.extension() == ".png" ? "set terminal pngcairo size 1000,640 font 'sans,11'\n"
                                                   : "set terminal svg size 1000,640 font 'sans,14'\n";
  program += fmt::format(
      "set output {}\nset title 'Bus bandwidth over message size'\nset logscale xy\nset format x '%.0b %BB'\n"
      "set xlabel 'message'\nset ylabel 'GB/s'\nset xtics 1024,16\nset grid\nset key outside right\n",
      gnuplot_file(file));
  std::string curves, blocks;
  int number = 0;
  for (const ProbedLevel& level : levels) {
    const auto ranks = static_cast<int>(level.ranks.size());
    for (const ProbedOp& op : level.ops) {
      blocks += fmt::format("$curve{} << END\n", number);
      for (const ProbePoint& point : op.points)
        blocks += fmt::format("{} {:.9g}\n", point.bytes, point.bytes_per_s() * bus_factor(op.op, ranks) * 1e-9);
      blocks += "END\n";
      // "_" would make a subscript.
      curves +=
          fmt::format("{}$curve{} using 1:2 with linespoints title {} noenhanced", number == 0 ? "plot " : ", ", number,
                      gnuplot_quoted(fmt::format("{} ({}, {})", name_of(op.op), level.name, level.transport)));
      ++number;
    }
    if (level.link_bytes_per_s > 0)
      curves += fmt::format("{}{:.9g} with lines dashtype 2 title {} noenhanced", curves.empty() ? "plot " : ", ",
                            level.link_bytes_per_s * 1e-9,
                            gnuplot_quoted(fmt::format("link ({}, {})", level.name, level.transport)));
  }
  return program + blocks + curves + "\n";
}

}  // namespace tutti
