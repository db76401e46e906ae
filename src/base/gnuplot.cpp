#include "base/gnuplot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <string_view>

#include "base/process.h"
#include "base/utf8.h"
#include "tutti/error.h"

namespace tutti {

namespace {

bool is_control(char c) { return std::iscntrl(static_cast<unsigned char>(c)) != 0; }

}  // namespace

std::string gnuplot_quoted(const std::string& text) {
  // Letters of other languages are bytes from 128 on.
  constexpr std::string_view kHarmless = " .,:;()+-/=_";
  const auto is_harmless = [&](unsigned char c) {
    return c >= 0x80 || std::isalnum(c) != 0 || kHarmless.find(static_cast<char>(c)) != std::string_view::npos;
  };
  std::string result = "\"";
  bool is_after_number = false;  // of which gnuplot would take a digit for a part
  for (const char c : valid_utf8(text)) {
    const auto code = static_cast<unsigned char>(is_control(c) ? ' ' : c);
    is_after_number = !is_harmless(code) || (is_after_number && std::isdigit(code) != 0);
    result += is_after_number ? fmt::format("\\{:03o}", code) : std::string(1, static_cast<char>(code));
  }
  return result + "\"";
}

std::string gnuplot_tic_label(const std::string& text) {
  std::string format;
  for (const char c : text) {
    if (c == '%') format += c;
    format += c;
  }
  return gnuplot_quoted(format);
}

std::string gnuplot_file(const std::filesystem::path& path) {
  const std::string file = std::filesystem::absolute(path).string();
  std::string quoted = gnuplot_quoted(file);
  if (std::any_of(file.begin(), file.end(), is_control) || !is_utf8(file))
    throw Error("gnuplot cannot write to {}: choose a path without control characters, in UTF-8", valid_utf8(file));
  return quoted;
}

bool draw_with_gnuplot(const std::string& program) {
  if (!is_in_path("gnuplot")) return false;
  // -d: without what start-up files say, one of which may lie in this folder.
  FILE* const pipe = ::popen("gnuplot -d", "w");
  if (pipe == nullptr) throw Error("cannot start gnuplot");
  const bool is_written = std::fwrite(program.data(), 1, program.size(), pipe) == program.size();
  const int status = ::pclose(pipe);
  if (!is_written || status != 0) throw Error("gnuplot could not draw; what it said is above");
  return true;
}

}  // namespace tutti
