#pragma once

#include <filesystem>
#include <string>

#include "base/fd.h"

namespace tutti {

/// A folder that one process at a time may write to: it holds a lock (flock) on the file `lock` there, in which its
/// number and its machine stand. The kernel releases it when the process ends, however it ends.
class FolderLock {
 public:
  /// Takes the lock, or says in holder() who has it, or in problem() why nobody can: some network file systems have no
  /// locks. Throws Error when the file cannot be made. A holder that is no longer there may take a moment to let go:
  /// its children inherit the lock, or another machine has yet to notice.
  explicit FolderLock(const std::filesystem::path& folder);

  bool is_held() const { return static_cast<bool>(fd_); }
  const std::string& holder() const { return holder_; }    // "process 4711 on node3"; "" where it is held or cannot be
  const std::string& problem() const { return problem_; }  // "" where locks work
  int fd() const { return fd_.get(); }

 private:
  Fd fd_;
  std::string holder_, problem_;
};

/// Whether a process holds this folder's lock now. False where locks do not work, and where there never was one.
bool is_folder_locked(const std::filesystem::path& folder);

}  // namespace tutti
