#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/folder_lock.h"
#include "record/cell.h"
#include "record/record_file.h"
#include "record/sweep_plan.h"

namespace tutti::sweep {

/// What is known about a cell: nothing yet, or how its last attempt ended. A cell that has once been done stays done.
enum class CellState { pending, done, failed };

struct CellOutcome {
  CellState state = CellState::pending;
  double wall_s = 0;         // of the attempt
  double samples_per_s = 0;  // for people who watch; reports compute their own
  std::string error = "";    // failed
};

/// A sweep's folder, held by one process at a time:
///   sweep.json    what is to be measured: all cells with their options, the file they come from, the command
///   cells.jsonl   one line for each attempt at a cell that ended, whole or not there
///   cells/ID/     that cell's run folder, with what it printed in output.log
/// Which cells are done follows from cells.jsonl alone, so nothing is lost whenever the process ends.
class SweepFolder {
 public:
  /// Makes the folder. Throws UsageError when there is a sweep in it already.
  static SweepFolder create(const std::filesystem::path& path, const SweepPlan& plan);
  /// Opens one that is there. Throws UsageError when it is no sweep, Error when another process has it.
  static SweepFolder open(const std::filesystem::path& path);
  SweepFolder(SweepFolder&& other) noexcept = default;
  SweepFolder& operator=(SweepFolder&&) = delete;

  const std::filesystem::path& path() const { return path_; }
  const SweepPlan& plan() const { return plan_; }
  const std::vector<SweepCell>& cells() const { return plan_.cells; }
  const CellOutcome& outcome(const std::string& id) const;
  std::filesystem::path cell_folder(const std::string& id) const { return path_ / "cells" / id; }

  /// Writes a cell to the disk.
  void add(const Cell& cell);

  /// For the processes of cells: while one of them lives, nobody else can have the folder. Not closed by exec there.
  int lock_fd() const { return lock_.fd(); }

 private:
  SweepFolder(std::filesystem::path path, FolderLock lock);
  void read_outcomes();

  std::filesystem::path path_;
  FolderLock lock_;
  SweepPlan plan_;
  std::map<std::string, CellOutcome> outcomes_;
  std::optional<RecordFile> records_;
};

/// The sweep of this name (empty: any) in the folder `runs` that was begun last. Throws UsageError when there is none.
std::filesystem::path newest_sweep(const std::filesystem::path& runs, const std::string& name);

/// Where a new sweep goes unless told otherwise: RUNS/TIME-bench-NAME.
std::filesystem::path new_sweep_path(const std::filesystem::path& runs, const std::string& name);

}  // namespace tutti::sweep
