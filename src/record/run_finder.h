#pragma once

#include <filesystem>
#include <functional>
#include <string>

namespace tutti {

/// Finds what a person names: by its place, or as a name in the folder that holds the runs.
struct RunFinder {
  std::string what;   // "run"
  std::string where;  // what is looked for at a place: "a folder with records.jsonl"
  std::string hint;   // said where no name is near
  /// What is there at this place; empty: nothing.
  std::function<std::filesystem::path(const std::filesystem::path& place)> look;

  /// Empty where there is none.
  std::filesystem::path find(const std::string& run, const std::filesystem::path& runs_folder) const;
  /// The message for that, with the nearest name.
  std::string complaint(const std::string& run, const std::filesystem::path& runs_folder) const;
  /// Throws Error with it.
  std::filesystem::path require(const std::string& run, const std::filesystem::path& runs_folder) const;
};

/// The records file of a run: the file itself, or its folder.
RunFinder run_finder();
/// The file of records of a run or a sweep.
RunFinder run_or_sweep_finder();

}  // namespace tutti
