#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "base/folder_lock.h"

namespace tutti {

/// A run that may be removed: nobody runs it, and nobody can begin to while this lives.
class RemovableRun {
 public:
  /// `run` is the run's folder, or its name in `runs_folder`. Throws UsageError for what is no folder of a run (no
  /// records, a sweep, a link, a path with ".."), and for a run that is going on.
  RemovableRun(const std::string& run, const std::filesystem::path& runs_folder);

  const std::filesystem::path& folder() const { return folder_; }
  /// Of its files.
  uint64_t bytes() const;
  /// Removes it: it loses its name first, so that what is left after a kill or an error is no run. Throws Error.
  void remove();

 private:
  std::filesystem::path folder_;
  std::unique_ptr<FolderLock> lock_;
};

/// Removes what removals that were killed have left in a folder of runs.
void finish_removals(const std::filesystem::path& runs_folder);

}  // namespace tutti
