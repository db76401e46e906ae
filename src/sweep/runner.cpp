#include "sweep/runner.h"

#include <fmt/format.h>
#include <sys/statvfs.h>

#include <cstdio>
#include <cstdlib>

#include "base/files.h"
#include "base/process.h"
#include "sweep/cell_record.h"
#include "tutti/error.h"

namespace tutti::sweep {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kFullDiskBytes = 1 << 16;  // less free space than this: a run cannot even say what is wrong

double load_average() {
  double load = 0;
  return ::getloadavg(&load, 1) == 1 ? load : 0;
}

bool is_disk_full(const fs::path& folder) {
  struct statvfs facts = {};
  return ::statvfs(folder.c_str(), &facts) == 0 && facts.f_bavail * facts.f_frsize < kFullDiskBytes;
}

bool speaks_of_full_disk(const std::string& text) { return text.find("No space left on device") != std::string::npos; }

[[noreturn]] void stop_for_full_disk(const SweepFolder& folder, const std::string& where) {
  throw Error("the disk is full ({}). Every cell recorded so far is safe; make room, then: tutti bench --resume {}",
              where, folder.path().string());
}

/// What cells need besides their own words.
class Runner {
 public:
  Runner(SweepFolder& folder, const Place& place) : folder_(folder), place_(place), progress_(folder) {}

  SweepResult run() {
    for (const SweepCell& cell : folder_.cells()) {
      if (signals_.first() != 0) break;
      if (folder_.outcome(cell.id).state == CellState::done) continue;
      run_cell(cell);
    }
    progress_.finish();
    return {count_cells(folder_), signals_.first()};
  }

 private:
  void run_cell(const SweepCell& cell) {
    const fs::path run_folder = folder_.cell_folder(cell.id);
    remove_tree(run_folder);  // of an attempt that failed or was interrupted
    progress_.cell_starts(cell);
    Attempt attempt;
    attempt.load = load_average();
    const auto start = Clock::now();
    try {
      make_folders(run_folder, Readers::owner);
      const CellCommand command = cell_command(cell, run_folder, place_);
      attempt.command = shell_line(command.words);
      attempt.launcher = command.launcher;
      if (!execute(command, run_folder / "output.log", attempt)) return;  // stays pending
    } catch (const Error& error) {
      attempt.error = error.what();
    }
    if (!attempt.error.empty() && signals_.first() != 0) return;  // Ctrl-C reaches what prepares a cell, too
    attempt.wall_s = seconds_since(start);
    if (!attempt.error.empty() && (speaks_of_full_disk(attempt.error) || is_disk_full(folder_.path())))
      stop_for_full_disk(folder_, "cell " + cell.id);
    if (!folder_.plan().keep_weights) {
      std::error_code none;
      fs::remove(run_folder / "model.safetensors", none);  // of no use to a comparison, and large
    }
    try {
      folder_.add(make_cell_record(cell, folder_.plan().name, folder_.plan().warmup_steps, run_folder, attempt));
    } catch (const Error& error) {
      if (speaks_of_full_disk(error.what())) stop_for_full_disk(folder_, error.what());
      throw;
    }
    progress_.cell_ends(cell);
  }

  /// False when a signal has interrupted it.
  bool execute(const CellCommand& command, const fs::path& log, Attempt& attempt) {
    for (const auto& words : command.before) {
      const ToolResult result = run_tool(words);
      if (result.exit_code != 0)
        throw Error("{}: {}", shell_line(words), last_complaint(result.output + result.errors));
    }
    ChildOptions options;
    options.words = command.words;
    options.log = log;
    options.timeout_s = folder_.plan().timeout_minutes * 60;
    // srun has processes elsewhere to end; those that are killed cannot.
    options.death_signal = command.launcher == "srun" ? SIGTERM : SIGKILL;
    options.keep_fd = folder_.lock_fd();
    const ChildResult result = run_child(options, signals_, [this] { progress_.tick(); });
    for (const auto& words : command.after) run_tool(words);
    if (result.was_stopped) return false;
    if (result.exit_code == 0) return true;
    if (result.timed_out) {
      attempt.error = fmt::format("not over after {:g} minutes, the sweep's timeout-minutes", options.timeout_s / 60);
      return true;
    }
    const std::string complaint = last_complaint(read_file(log));
    attempt.error = complaint.empty() ? fmt::format("exit code {}", result.exit_code)
                                      : fmt::format("{} (exit code {})", complaint, result.exit_code);
    return true;
  }

  SweepFolder& folder_;
  const Place& place_;
  StopSignals signals_;
  SweepProgress progress_;
};

}  // namespace

SweepResult run_sweep(SweepFolder& folder, const Place& place) { return Runner(folder, place).run(); }

}  // namespace tutti::sweep
