#include "sweep/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace tutti::sweep {
namespace {

constexpr double kRedrawSeconds = 0.2;

struct TerminalSize {
  int width = 80;
  int height = 24;
};

TerminalSize terminal_size() {
  winsize size = {};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return {};
  return {size.ws_col, size.ws_row};
}

std::string left_text(double seconds) {
  return seconds < 0 ? "" : fmt::format(", about {} left", shown_duration(seconds));
}

}  // namespace

CellCounts count_cells(const SweepFolder& folder) {
  CellCounts counts;
  for (const SweepCell& cell : folder.cells()) {
    const CellState state = folder.outcome(cell.id).state;
    ++counts.all;
    counts.done += state == CellState::done ? 1 : 0;
    counts.failed += state == CellState::failed ? 1 : 0;
  }
  return counts;
}

double seconds_left(const SweepFolder& folder, const std::string& running, double running_s) {
  struct Sum {
    double seconds = 0;
    int cells = 0;
    double mean() const { return seconds / cells; }
  };
  Sum all;
  std::map<std::string, Sum> same;
  for (const SweepCell& cell : folder.cells()) {
    const CellOutcome& outcome = folder.outcome(cell.id);
    if (outcome.state != CellState::done) continue;
    for (Sum* sum : {&all, &same[cell.label]}) {
      sum->seconds += outcome.wall_s;
      ++sum->cells;
    }
  }
  if (all.cells == 0) return -1;
  double left = 0;
  for (const SweepCell& cell : folder.cells()) {
    const CellState state = folder.outcome(cell.id).state;
    if (state == CellState::done || (state == CellState::failed && cell.id != running)) continue;
    const auto known = same.find(cell.label);
    const double expected = known != same.end() ? known->second.mean() : all.mean();
    left += cell.id == running ? std::max(0.0, expected - running_s) : expected;
  }
  return left;
}

std::string shown_duration(double seconds) {
  const long whole = std::lround(std::max(0.0, seconds));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{}:{:02} min", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02} h", whole / 3600, whole / 60 % 60, whole % 60);
}

SweepProgress::SweepProgress(const SweepFolder& folder) : folder_(folder), is_terminal_(::isatty(STDOUT_FILENO) == 1) {
  const char* const kind = std::getenv("TERM");
  if (kind == nullptr || std::string(kind) == "dumb") is_terminal_ = false;
}

SweepProgress::~SweepProgress() {
  if (!is_finished_ && lines_ > 0) fmt::print("\n");
}

void SweepProgress::cell_starts(const SweepCell& cell) {
  running_ = cell.id;
  started_ = Clock::now();
  drawn_ = {};
  if (is_terminal_) draw();
}

void SweepProgress::tick() {
  if (is_terminal_ && seconds_since(drawn_) > kRedrawSeconds) draw();
}

void SweepProgress::cell_ends(const SweepCell& cell) {
  running_.clear();
  if (is_terminal_) return draw();
  const CellCounts counts = count_cells(folder_);
  const CellOutcome& outcome = folder_.outcome(cell.id);
  const std::string place = fmt::format("[{}/{}]", counts.done + counts.failed, counts.all);
  if (outcome.state == CellState::done) {
    fmt::print("{} {}: {:.1f} samples/s, took {}{}\n", place, cell.id, outcome.samples_per_s,
               shown_duration(outcome.wall_s), left_text(seconds_left(folder_, "", 0)));
  } else {
    fmt::print("{} {}: FAILED after {}: {}\n", place, cell.id, shown_duration(outcome.wall_s), outcome.error);
  }
  std::fflush(stdout);
}

void SweepProgress::finish() {
  is_finished_ = true;
  if (is_terminal_) draw();
}

void SweepProgress::draw() {
  const TerminalSize size = terminal_size();
  const CellCounts counts = count_cells(folder_);
  const double running_s = running_.empty() ? 0 : seconds_since(started_);
  std::string text = fmt::format(
      "{}: {} of {} cells done{}{}\n", folder_.plan().name, counts.done, counts.all,
      counts.failed > 0 ? fmt::format(", {} failed", counts.failed) : "",
      counts.done + counts.failed < counts.all ? left_text(seconds_left(folder_, running_, running_s)) : "");
  text += progress_table(folder_, running_, size.width, size.height - 4);
  if (!running_.empty()) text += fmt::format("now {} ({})\n", running_, shown_duration(running_s));
  std::string screen = lines_ > 0 ? fmt::format("\033[{}A", lines_) : "";
  for (std::size_t begin = 0, end = 0; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1)
    screen += text.substr(begin, end - begin) + "\033[K\n";
  screen += "\033[J";  // what a longer table has left below
  lines_ = static_cast<int>(std::count(text.begin(), text.end(), '\n'));
  drawn_ = Clock::now();
  std::fwrite(screen.data(), 1, screen.size(), stdout);
  std::fflush(stdout);
}

}  // namespace tutti::sweep
