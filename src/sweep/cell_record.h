#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sweep/cells.h"

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
/// Its status is "done" only if the run ended well, has its summary and a time for every step; otherwise "failed" with
/// the error.
nlohmann::json make_cell_record(const SweepCell& cell, const std::string& sweep, int warmup_steps,
                                const std::filesystem::path& run_folder, const Attempt& attempt);

/// What a program complained about: the last line of its output that is Tutti's own message, else the last line.
std::string last_complaint(const std::string& output);

/// The records of a run, in order; a last line without an end is skipped. Empty when there are none.
std::vector<nlohmann::json> read_run_records(const std::filesystem::path& run_folder);

}  // namespace tutti::sweep
