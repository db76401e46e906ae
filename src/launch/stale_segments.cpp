#include "launch/stale_segments.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <set>
#include <string>

#include "base/proc_files.h"
#include "comm/nodes.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

/// Names of files that a process has open or mapped, without their folders: these may be of another mount name space.
/// False where it cannot be looked into.
bool find_used(pid_t pid, std::set<std::string>& used) {
  // Open files first, then maps: whoever maps a file closes it only afterwards, and cannot be missed in between.
  std::error_code error;
  for (fs::directory_iterator entry(fmt::format("/proc/{}/fd", pid), error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code closed;  // a link is only read: looking at the file itself may hang on a network
    used.insert(fs::read_symlink(entry->path(), closed).filename().string());
  }
  if (error && error != std::errc::no_such_file_or_directory && error != std::errc::no_such_process) return false;
  std::ifstream maps(fmt::format("/proc/{}/maps", pid));
  for (std::string line; std::getline(maps, line);)
    if (const auto slash = line.rfind('/'); slash != std::string::npos) used.insert(line.substr(slash + 1));
  return true;
}

bool is_ours(const fs::path& path, bool is_file) {
  struct stat stat = {};
  return ::lstat(path.c_str(), &stat) == 0 && stat.st_uid == ::geteuid() && (!is_file || S_ISREG(stat.st_mode));
}

}  // namespace

std::vector<fs::path> remove_stale_segments(const fs::path& folder) {
  const std::string host = this_host();
  std::vector<fs::path> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored))
    for (const std::string& name : {host, host.substr(0, host.find('.'))})
      if (entry.path().filename().string().rfind("vader_segment." + name + ".", 0) == 0 &&
          is_ours(entry.path(), true)) {
        found.push_back(entry.path());
        break;
      }
  std::vector<fs::path> removed;
  if (found.empty()) return removed;
  std::set<std::string> used;
  for (const pid_t pid : all_pids()) {
    // Other users cannot have opened it, and what root does with our files is not for us to see.
    const bool may_use = ::geteuid() == 0 || is_ours(fmt::format("/proc/{}", pid), false);
    if (may_use && !find_used(pid, used)) return removed;
  }
  for (const fs::path& path : found)
    if (used.count(path.filename().string()) == 0 && ::unlink(path.c_str()) == 0) removed.push_back(path);
  return removed;
}

}  // namespace tutti
