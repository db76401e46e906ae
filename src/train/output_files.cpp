#include "train/output_files.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>

#include "base/fd.h"
#include "base/files.h"
#include "tutti/error.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

fs::path folder_of(const fs::path& file) { return file.has_parent_path() ? file.parent_path() : fs::path("."); }

/// Without "." and "..", and from the root.
fs::path plain(const fs::path& path) { return fs::absolute(path).lexically_normal(); }

}  // namespace

bool lies_in(const fs::path& file, const fs::path& folder) {
  if (file.empty() || folder.empty()) return false;
  const fs::path inner = plain(file), outer = plain(folder / "");  // which ends with a slash, as in "runs/a/"
  const auto last = std::prev(outer.end());                        // and so with an empty name
  return std::distance(inner.begin(), inner.end()) >= std::distance(outer.begin(), outer.end()) &&
         std::equal(outer.begin(), last, inner.begin());
}

void require_writable(const std::string& option, const fs::path& file, const fs::path& run_folder) {
  if (file.empty()) return;
  const auto refuse = [&](const std::string& why) { throw UsageError("{} {}: {}", option, file.string(), why); };
  std::error_code ignored;
  if (!file.has_filename() || fs::is_directory(file, ignored)) refuse("that is a folder: name a file in it");
  if (fs::exists(file, ignored) && !fs::is_regular_file(file, ignored))
    refuse("that is there, and is no file: it would be replaced by one. Choose another name");
  const fs::path folder = folder_of(file);
  if (!fs::exists(folder, ignored)) {
    if (lies_in(file, run_folder)) return;
    refuse(fmt::format("there is no folder {}: make it (mkdir -p), or name a file elsewhere", folder.string()));
  }
  if (!fs::is_directory(folder, ignored)) refuse(fmt::format("{} is no folder", folder.string()));
  // Asked of the file system itself: root may do everything, and yet not write to every disk.
  fs::path probe = file;
  probe += ".tmp";
  const Fd made(create_new_file(probe, Readers::owner));
  if (!made)
    refuse(fmt::format("the folder {} cannot be written to ({}): name a file elsewhere", folder.string(),
                       std::strerror(errno)));
  ::unlink(probe.c_str());
}

std::string problem_of_writing(const fs::path& file, const std::string& content) {
  try {
    write_file_atomically(file, content);
    return "";
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace tutti
