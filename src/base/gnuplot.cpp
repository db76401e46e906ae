#include "base/gnuplot.h"

#include <cstdio>

#include "base/process.h"
#include "tutti/error.h"

namespace tutti {

std::string gnuplot_quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("''") : std::string(1, c);
  return result + "'";
}

bool draw_with_gnuplot(const std::string& program) {
  if (!is_in_path("gnuplot")) return false;
  FILE* const pipe = ::popen("gnuplot", "w");
  if (pipe == nullptr) throw Error("cannot start gnuplot");
  const bool is_written = std::fwrite(program.data(), 1, program.size(), pipe) == program.size();
  const int status = ::pclose(pipe);
  if (!is_written || status != 0) throw Error("gnuplot could not draw; what it said is above");
  return true;
}

}  // namespace tutti
