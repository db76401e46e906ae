#include "train/console.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdio>

#include "base/terminal.h"

namespace tutti {

Console::Console(bool speaks) : speaks_(speaks), terminal_(stdout_is_terminal()) {}

Console::~Console() { clear_progress(); }

void Console::clear_progress() {
  if (!shows_progress_) return;
  fmt::print("\r\033[K");
  shows_progress_ = false;
}

void Console::line(const std::string& text) {
  if (!speaks_) return;
  clear_progress();
  fmt::print("{}\n", text);
  std::fflush(stdout);
}

void Console::progress(const std::string& text) {
  if (!is_progress_due()) return;
  last_progress_ = Clock::now();
  fmt::print("\r\033[K{}", text);
  std::fflush(stdout);
  shows_progress_ = true;
}

std::string readable_duration(double seconds) {
  const auto whole = std::llround(seconds);
  if (whole >= 3600) return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

}  // namespace tutti
