#pragma once

#include <filesystem>
#include <string>

#include "record/cell.h"
#include "record/sweep_plan.h"

namespace tutti::sweep {

/// How an attempt at a cell began and ended, as seen from outside.
struct Attempt {
  std::string command;        // the exact command line
  std::string launcher = "";  // what started its ranks: see CellCommand
  double load = 0;            // average of the last minute when it began
  double wall_s = 0;
  std::string error = "";  // why it cannot count, whatever its records say; empty: nothing is known against it
};

/// The cell record (see docs/reference/file-formats.md) of an attempt whose `tutti train` has written to `run_folder`.
/// It has failed, with the error, unless the run ended well and has its summary and a time for every step.
Cell make_cell_record(const SweepCell& cell, const std::string& sweep, int warmup_steps,
                      const std::filesystem::path& run_folder, const Attempt& attempt);

/// What a program complained about: the last line of its output that is Tutti's own message, else the last line.
std::string last_complaint(const std::string& output);

}  // namespace tutti::sweep
