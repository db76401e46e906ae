#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "options/train_options.h"

// The folder `checkpoints` of a run. Its step-* are one line of training: each continues those before it. What does not
// belong to that line any more, because somebody has gone back, is called abandoned-step-*.
namespace tutti {

inline constexpr const char* kStateFile = "state.json";  // of a checkpoint

/// The text of a checkpoint's state.json, with a hash of itself: a bit that flips in a number leaves valid JSON.
std::string state_text(nlohmann::json state);
/// Reads it. Throws Error where it is not as it was written; files of versions that had no such hash are taken as they
/// are.
nlohmann::json read_state(const std::filesystem::path& checkpoint);

/// Those of a run, the oldest first.
std::vector<std::filesystem::path> checkpoints_in(const std::filesystem::path& run_folder);

/// What --resume names.
struct ResumeChoice {
  std::vector<std::filesystem::path> folders;  // of checkpoints, the best first; never none
  bool is_one = false;                         // a checkpoint was named; else a run, and an older one will do
};

/// `resume` names a checkpoint's folder, a run's folder or a run in `runs_folder`. Throws Error.
ResumeChoice find_checkpoints(const std::string& resume, const std::filesystem::path& runs_folder);

/// The run that a checkpoint lies in; empty where it lies elsewhere.
std::filesystem::path run_of(const std::filesystem::path& checkpoint);

/// What the run was told, from the first of these whose state can be read. Throws Error about the first where none can.
TrainOptions saved_options(const ResumeChoice& choice);

/// Removes what saves that were killed have left. For the one process that writes there.
void remove_leftovers(const std::filesystem::path& run_folder);

/// Where a checkpoint is written before it gets its name.
std::filesystem::path unfinished_checkpoint(const std::filesystem::path& run_folder, int64_t step);

/// Gives the checkpoint that was written at unfinished_checkpoint() its name, with which it appears whole; one that has
/// this name already is replaced. At no moment is neither there. Returns the new name. Throws Error.
std::filesystem::path finish_checkpoint(const std::filesystem::path& run_folder, int64_t step);

/// Renames the checkpoints that do not lead to `from` (empty: none does) to abandoned-*, so that a later --resume goes
/// on with what is saved from now on. Returns their new names.
std::vector<std::filesystem::path> set_others_aside(const std::filesystem::path& run_folder,
                                                    const std::filesystem::path& from);

/// Removes all but the newest.
void keep_newest(const std::filesystem::path& run_folder, int64_t count);

}  // namespace tutti
