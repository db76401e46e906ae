#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "record/cell.h"

namespace tutti {

/// What lies in a sweep's folder, a run's folder, or a file of records.
struct CellSet {
  std::string title;    // of the sweep, or the run's name
  std::string command;  // that made it, if known
  std::shared_ptr<const Environment> environment;
  std::vector<Cell> cells;  // the last attempt of each, in order of their first
  std::vector<std::string> notes;
};

/// Reads `run`: a folder with cells.jsonl (a sweep) or records.jsonl (a run), a file of records, or the name of either
/// kind of folder in `runs_folder`. A last line without an end is skipped and noted. Throws Error naming file and line
/// of what cannot be read.
CellSet read_cells(const std::string& run, const std::filesystem::path& runs_folder);

}  // namespace tutti
