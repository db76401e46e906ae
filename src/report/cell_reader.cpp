#include "report/cell_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/folder_lock.h"
#include "base/names.h"
#include "record/record_file.h"
#include "record/record_reader.h"
#include "record/run_finder.h"
#include "record/sweep_plan.h"
#include "report/run_records.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

std::string attempt_key(const Cell& cell) { return fmt::format("{}\x1f{}\x1f{}", cell.sweep, cell.id, cell.repeat); }

void read_lines(const fs::path& file, CellSet& set) {
  RunRecords run;
  std::unordered_map<std::string, std::size_t> places;  // of attempts, in set.cells
  const fs::path folder = file.parent_path() / "cells";
  const auto add = [&](Cell cell) {
    if (cell.id.empty()) {
      set.cells.push_back(std::move(cell));
      return;
    }
    // Of a published text's line, the id is no folder; nor of a record that somebody else has written.
    if (problem_of_folder_name(cell.id).empty()) cell.folder = (folder / cell.id).string();
    const auto [place, is_new] = places.emplace(attempt_key(cell), set.cells.size());
    if (is_new)
      set.cells.push_back(std::move(cell));
    else
      set.cells[place->second] = std::move(cell);
  };
  RecordReader reader(file);
  while (reader.next()) {
    if (reader.is<Cell>())
      add(reader.as<Cell>());
    else
      run.add(reader);
  }
  if (reader.is_cut_off())
    set.notes.push_back(
        fmt::format("{}: the last line is cut off and was skipped; its cell has to run again", file.string()));
  // A process that writes to the folder holds its lock.
  const bool goes_on = !run.summary() && file.filename() == kRecordsFile && is_folder_locked(file.parent_path());
  if (std::optional<Cell> cell = goes_on ? run.cell_so_far() : run.cell()) {
    cell->folder = file.parent_path().string();
    cell->run = set.title;
    if (goes_on) set.notes.push_back(fmt::format("{} is still going on: its figures are those so far", set.title));
    if (!set.environment) set.environment = cell->environment;
    set.cells.push_back(std::move(*cell));
  }
}

void read_sweep_file(const fs::path& file, CellSet& set) {
  const sweep::SweepPlan sweep = sweep::read_sweep_plan(file);
  set.title = sweep.title.empty() ? sweep.name : sweep.title;
  set.command = sweep.command;
  if (sweep.environment) set.environment = std::make_shared<const Environment>(*sweep.environment);
  std::unordered_set<std::string> ended;
  for (const Cell& cell : set.cells) ended.insert(cell.id);
  const auto pending = std::count_if(sweep.cells.begin(), sweep.cells.end(),
                                     [&](const auto& cell) { return ended.count(cell.id) == 0; });
  if (pending > 0)
    set.notes.push_back(fmt::format(
        "{} of {} cells of {} are pending; {}", pending, sweep.cells.size(), set.title,
        is_folder_locked(file.parent_path()) ? "the sweep is still going on" : "`tutti bench --resume` runs them"));
}

}  // namespace

CellSet read_cells(const std::string& run, const fs::path& runs_folder) {
  const fs::path file = run_or_sweep_finder().require(run, runs_folder);
  CellSet set;
  const fs::path folder = fs::absolute(file).lexically_normal().parent_path();
  const bool is_named_by_folder = file.filename() == kRecordsFile || file.filename() == kCellsFile;
  set.title = (is_named_by_folder ? folder.filename() : file.stem()).string();
  const fs::path sweep = file.parent_path() / kSweepFile;
  if (fs::exists(file) || !fs::exists(sweep)) read_lines(file, set);
  if (file.filename() == kCellsFile && fs::exists(sweep)) read_sweep_file(sweep, set);
  return set;
}

}  // namespace tutti
