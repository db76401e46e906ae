#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "base/error.h"
#include "probe/links_report.h"

namespace tutti {
namespace {

bool has_gnuplot() {
  std::istringstream folders(std::getenv("PATH") == nullptr ? "" : std::getenv("PATH"));
  for (std::string folder; std::getline(folders, folder, ':');)
    if (::access((folder + "/gnuplot").c_str(), X_OK) == 0) return true;
  return false;
}

/// Text between gnuplot's single quotes, in which a quote is written twice.
std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("''") : std::string(1, c);
  return result + "'";
}

}  // namespace

std::string gnuplot_program(const std::vector<ProbedLevel>& levels, const std::filesystem::path& file) {
  std::string program = file.extension() == ".png" ? "set terminal pngcairo size 1000,640 font 'sans,11'\n"
                                                   : "set terminal svg size 1000,640 font 'sans,14'\n";
  program += fmt::format(
      "set output {}\nset title 'Bus bandwidth over message size'\nset logscale xy\nset format x '%.0b %BB'\n"
      "set xlabel 'message'\nset ylabel 'GB/s'\nset xtics 1024,16\nset grid\nset key outside right\n",
      quoted(file.string()));
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
      curves += fmt::format("{}$curve{} using 1:2 with linespoints title {} noenhanced", number == 0 ? "plot " : ", ",
                            number, quoted(fmt::format("{} ({}, {})", name_of(op.op), level.name, level.transport)));
      ++number;
    }
    if (level.link_bytes_per_s > 0)
      curves +=
          fmt::format("{}{:.9g} with lines dashtype 2 title {} noenhanced", curves.empty() ? "plot " : ", ",
                      level.link_bytes_per_s * 1e-9, quoted(fmt::format("link ({}, {})", level.name, level.transport)));
  }
  return program + blocks + curves + "\n";
}

bool draw_with_gnuplot(const std::string& program) {
  if (!has_gnuplot()) return false;
  FILE* const pipe = ::popen("gnuplot", "w");
  if (pipe == nullptr) throw Error("cannot start gnuplot");
  const bool is_written = std::fwrite(program.data(), 1, program.size(), pipe) == program.size();
  const int status = ::pclose(pipe);
  if (!is_written || status != 0) throw Error("gnuplot could not draw; what it said is above");
  return true;
}

}  // namespace tutti
