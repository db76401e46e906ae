#include "train/checkpoint_folder.h"

#include <fcntl.h>
#include <stdio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/json_files.h"
#include "base/sha256.h"
#include "options/option_table.h"
#include "record/run_finder.h"
#include "tutti/error.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFolder = "checkpoints";
constexpr const char* kWriting = "writing-";    // half of a checkpoint
constexpr const char* kReplaced = "replaced-";  // a whole one, while another takes its name
constexpr const char* kAbandoned = "abandoned-";

std::string name_of(int64_t step) { return fmt::format("step-{:010}", step); }

bool begins_with(const std::string& text, const std::string& beginning) { return text.rfind(beginning, 0) == 0; }

std::vector<fs::path> entries_called(const fs::path& folder, const std::string& beginning) {
  std::vector<fs::path> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored))
    if (begins_with(entry.path().filename().string(), beginning)) found.push_back(entry.path());
  std::sort(found.begin(), found.end());  // the step number has leading zeros
  return found;
}

/// As it is written and hashed. A path among the options may be no text at all: see record_line().
std::string dump(const nlohmann::json& state) {
  return state.dump(1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void rename_or_throw(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0)
    throw Error("cannot rename {} to {}: {}", from.string(), to.string(), std::strerror(errno));
}

}  // namespace

std::string state_text(nlohmann::json state) {
  Sha256 hash;
  hash.update(dump(state));
  state["sha256"][kStateFile] = hash.hex();
  return dump(state) + "\n";
}

nlohmann::json read_state(const fs::path& checkpoint) {
  nlohmann::json state = read_json_file(checkpoint / kStateFile);
  if (!state.is_object() || !state.contains("sha256") || !state["sha256"].contains(kStateFile)) return state;
  const nlohmann::json expected = state["sha256"][kStateFile];
  state["sha256"].erase(kStateFile);
  Sha256 hash;
  hash.update(dump(state));
  if (hash.hex() != expected) throw Error("{} is not as it was written", (checkpoint / kStateFile).string());
  return state;
}

std::vector<fs::path> checkpoints_in(const fs::path& run_folder) {
  return entries_called(run_folder / kFolder, "step-");
}

ResumeChoice find_checkpoints(const std::string& resume, const fs::path& runs_folder) {
  const RunFinder finder{"checkpoint at", fmt::format("a folder with {} or checkpoints/step-*", kStateFile),
                         "--resume takes a run's name, its folder or a checkpoint's folder; --checkpoint-steps N makes "
                         "checkpoints",
                         [](const fs::path& place) {
                           return fs::exists(place / kStateFile) || !checkpoints_in(place).empty() ? place : fs::path();
                         }};
  const fs::path place = finder.require(resume, runs_folder);
  if (fs::exists(place / kStateFile)) return {{place}, true};
  std::vector<fs::path> newest_first = checkpoints_in(place);
  std::reverse(newest_first.begin(), newest_first.end());
  return {newest_first, false};
}

fs::path run_of(const fs::path& checkpoint) {
  // With a slash at its end, a path has no last name.
  const fs::path folder = checkpoint.has_filename() ? checkpoint : checkpoint.parent_path();
  if (folder.parent_path().filename() != kFolder) return {};
  const fs::path run = folder.parent_path().parent_path();
  return run.empty() ? fs::path(".") : run;
}

TrainOptions saved_options(const ResumeChoice& choice) {
  std::string problem;
  for (const fs::path& folder : choice.folders) {
    try {
      const nlohmann::json options = read_state(folder).at("options");
      if (!options.is_object()) throw Error("its options are none");
      return read_options(options);
    } catch (const std::exception& error) {
      if (problem.empty())
        problem = fmt::format("the checkpoint {} is damaged: {}: {}", folder.string(), (folder / kStateFile).string(),
                              error.what());
    }
  }
  throw Error(problem);
}

void remove_leftovers(const fs::path& run_folder) {
  const fs::path folder = run_folder / kFolder;
  for (const fs::path& half : entries_called(folder, kWriting)) remove_tree(half);
  for (const fs::path& old : entries_called(folder, kReplaced)) {
    const fs::path name = folder / old.filename().string().substr(std::strlen(kReplaced));
    if (fs::exists(name))
      remove_tree(old);
    else
      rename_or_throw(old, name);
  }
}

fs::path unfinished_checkpoint(const fs::path& run_folder, int64_t step) {
  return run_folder / kFolder / (kWriting + name_of(step));
}

fs::path finish_checkpoint(const fs::path& run_folder, int64_t step) {
  const fs::path written = unfinished_checkpoint(run_folder, step);
  fs::path name = run_folder / kFolder / name_of(step);
  if (!fs::exists(name)) {
    rename_or_throw(written, name);
  } else if (::renameat2(AT_FDCWD, written.c_str(), AT_FDCWD, name.c_str(), RENAME_EXCHANGE) == 0) {
    remove_tree(written);
  } else {
    // A file system that cannot exchange names: remove_leftovers() gives the old one its name back after a kill here.
    const fs::path old = run_folder / kFolder / (kReplaced + name_of(step));
    remove_tree(old);
    rename_or_throw(name, old);
    rename_or_throw(written, name);
    remove_tree(old);
  }
  flush_to_disk(run_folder / kFolder);
  return name;
}

std::vector<fs::path> set_others_aside(const fs::path& run_folder, const fs::path& from) {
  std::error_code ignored;
  const fs::path leads = from.has_filename() ? from : from.parent_path();  // with a slash at its end there is no name
  const bool is_ours = !from.empty() && fs::equivalent(leads.parent_path(), run_folder / kFolder, ignored) &&
                       begins_with(leads.filename().string(), "step-");
  std::vector<fs::path> aside;
  for (const fs::path& one : checkpoints_in(run_folder)) {
    if (is_ours && one.filename() <= leads.filename()) continue;
    fs::path name = one.parent_path() / (kAbandoned + one.filename().string());
    for (int again = 2; fs::exists(name); ++again)
      name = one.parent_path() / fmt::format("{}{}-{}", kAbandoned, one.filename().string(), again);
    rename_or_throw(one, name);
    aside.push_back(name);
  }
  return aside;
}

void keep_newest(const fs::path& run_folder, int64_t count) {
  const std::vector<fs::path> all = checkpoints_in(run_folder);
  for (std::size_t i = 0; i + static_cast<std::size_t>(count) < all.size(); ++i) remove_tree(all[i]);
}

}  // namespace tutti
