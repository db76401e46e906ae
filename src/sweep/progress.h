#pragma once

#include <string>

#include "base/clock.h"
#include "sweep/sweep_folder.h"

namespace tutti::sweep {

/// Numbers of cells by state.
struct CellCounts {
  std::size_t all = 0;
  std::size_t done = 0;
  std::size_t failed = 0;
};
CellCounts count_cells(const SweepFolder& folder);

/// How long the cells that are not done will take, judged by those that are: by repeats of the same configuration where
/// there are some, else by all. `running` (an id, or "") has run for `running_s`. Negative: nobody knows yet.
double seconds_left(const SweepFolder& folder, const std::string& running, double running_s);

/// "7 s", "1:32 min", "2:05:10 h"
std::string shown_duration(double seconds);

/// What is measured so far: a line for each configuration, a column for each value of the axis that is compared, in
/// samples/s; at most `width` columns of text and `height` lines, those around the running cell.
std::string progress_table(const SweepFolder& folder, const std::string& running, int width, int height);

/// Shows how a sweep goes: a table that is redrawn in place on a terminal, else a line for each cell that ends.
class SweepProgress {
 public:
  explicit SweepProgress(const SweepFolder& folder);
  ~SweepProgress();
  SweepProgress(const SweepProgress&) = delete;
  SweepProgress& operator=(const SweepProgress&) = delete;

  void cell_starts(const SweepCell& cell);
  /// A few times a second.
  void tick();
  void cell_ends(const SweepCell& cell);
  /// Draws for the last time; what is printed later comes below.
  void finish();

 private:
  void draw();

  const SweepFolder& folder_;
  bool is_terminal_;
  std::string running_;
  Clock::time_point started_{};
  Clock::time_point drawn_{};
  int lines_ = 0;  // drawn, to be overwritten
  bool is_finished_ = false;
};

}  // namespace tutti::sweep
