#include "sweep/sweep_folder.h"

#include <algorithm>
#include <ctime>
#include <string_view>
#include <utility>

#include "base/files.h"
#include "base/median.h"
#include "options/option_table.h"
#include "record/record_reader.h"
#include "tutti/error.h"

namespace tutti::sweep {
namespace {

namespace fs = std::filesystem;

FolderLock take_lock(const fs::path& folder) {
  FolderLock lock(folder);
  if (!lock.holder().empty())
    throw Error("another `tutti bench` is at work in {} ({}): wait until it has ended, or stop it", folder.string(),
                lock.holder());
  if (!lock.problem().empty()) throw Error("cannot lock {}: {}", (folder / "lock").string(), lock.problem());
  return lock;
}

/// For people who watch: a step's samples over its median time without warm-up.
double shown_rate(const Cell& cell) {
  const auto all = static_cast<int64_t>(cell.step_s.size());
  const int64_t warm_up = cell.warmup_steps < all ? std::max<int64_t>(0, cell.warmup_steps) : 0;
  const double step_s = upper_median({cell.step_s.begin() + warm_up, cell.step_s.end()});
  return step_s > 0 ? cell.samples_per_step / step_s : 0;
}

/// The folder may come from somebody else: what its cells run must be what a sweep file can say.
void check_cells(const fs::path& file, const std::vector<SweepCell>& cells) {
  constexpr std::string_view kOfNames = "abcdefghijklmnopqrstuvwxyz0123456789-";
  constexpr int kMost = 100'000;
  for (const SweepCell& cell : cells) {
    for (const auto& [name, value] : cell.options)
      if (name.empty() || name.find_first_not_of(kOfNames) != std::string::npos || is_set_by_sweeps(name))
        throw Error("{}: the cell '{}' has the option '{}', which a sweep cannot have", file.string(), cell.id, name);
    if (cell.nodes < 1 || cell.nodes > kMost || cell.ranks < 0 || cell.ranks > kMost || cell.servers < 0 ||
        cell.servers > kMost)
      throw Error("{}: the cell '{}' has {} nodes, {} ranks and {} servers, which cannot be", file.string(), cell.id,
                  cell.nodes, cell.ranks, cell.servers);
  }
}

CellOutcome outcome_of(const Cell& cell) {
  return {cell.is_failed ? CellState::failed : CellState::done, cell.wall_s, shown_rate(cell), cell.error};
}

}  // namespace

SweepFolder::SweepFolder(fs::path path, FolderLock lock) : path_(std::move(path)), lock_(std::move(lock)) {}

SweepFolder SweepFolder::create(const fs::path& path, const SweepPlan& plan) {
  make_folders(path, Readers::owner);
  {
    const SweepFolder folder(path, take_lock(path));
    if (fs::exists(path / kSweepFile))
      throw UsageError(
          "there is a sweep in {} already: go on with it, `tutti bench --resume {}`, or choose another folder",
          path.string(), path.string());
    write_sweep_plan(path / kSweepFile, plan);
  }
  return open(path);
}

SweepFolder SweepFolder::open(const fs::path& path) {
  if (!fs::exists(path / kSweepFile)) throw UsageError("{} is no sweep: there is no sweep.json in it", path.string());
  SweepFolder folder(path, take_lock(path));
  folder.plan_ = read_sweep_plan(path / kSweepFile);
  check_cells(path / kSweepFile, folder.plan_.cells);
  make_folders(path / "cells", Readers::owner);
  folder.records_.emplace(path / kCellsFile);
  folder.read_outcomes();
  return folder;
}

void SweepFolder::read_outcomes() {
  for (RecordReader reader(path_ / kCellsFile); reader.next();) {
    const Cell cell = reader.as<Cell>();
    CellOutcome& outcome = outcomes_[cell.id];
    if (outcome.state != CellState::done) outcome = outcome_of(cell);
  }
}

const CellOutcome& SweepFolder::outcome(const std::string& id) const {
  static const CellOutcome pending;
  const auto found = outcomes_.find(id);
  return found == outcomes_.end() ? pending : found->second;
}

void SweepFolder::add(const Cell& cell) {
  records_->add(Cell::kKind, cell);
  flush_to_disk(records_->path());
  outcomes_[cell.id] = outcome_of(cell);
}

fs::path newest_sweep(const fs::path& runs, const std::string& name) {
  fs::path newest;
  fs::file_time_type begun;
  std::error_code error;
  for (fs::directory_iterator entry(runs, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code none;
    const auto time = fs::last_write_time(entry->path() / kSweepFile, none);  // written once, when it begins
    if (none || (!newest.empty() && time < begun)) continue;
    if (!name.empty()) {
      try {
        if (read_sweep_plan(entry->path() / kSweepFile).name != name) continue;
      } catch (const Error&) {
        continue;  // another's damaged one is no reason to complain
      }
    }
    newest = entry->path();
    begun = time;
  }
  if (newest.empty())
    throw UsageError("there is no sweep{} in {} to go on with; `tutti bench --resume FOLDER` names another place",
                     name.empty() ? "" : " '" + name + "'", runs.string());
  return newest;
}

fs::path new_sweep_path(const fs::path& runs, const std::string& name) {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  char stamp[32];
  std::strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", &local);
  const std::string base = fmt::format("{}-bench-{}", stamp, name);
  fs::path path = runs / base;
  for (int again = 2; fs::exists(path); ++again) path = runs / fmt::format("{}-{}", base, again);
  return path;
}

}  // namespace tutti::sweep
