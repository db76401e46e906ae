#include "runs/remove_run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/files.h"
#include "record/record_file.h"
#include "record/record_reader.h"
#include "record/run_finder.h"
#include "runs/run_facts.h"
#include "tutti/error.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRemoving = ".removing-";

bool is_regular(const fs::path& file) {
  std::error_code ignored;
  return fs::symlink_status(file, ignored).type() == fs::file_type::regular;
}

/// Of a folder whose records begin as those of a run do; empty ones are of a run that failed before it began.
bool has_records_of_run(const fs::path& folder) {
  RecordReader reader(folder / kRecordsFile);
  return !reader.next() || reader.is<RunRecord>() || reader.is<EndRecord>();
}

uint64_t bytes_below(const fs::path& folder) {
  uint64_t bytes = 0;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const fs::file_status status = entry.symlink_status(ignored);
    if (status.type() == fs::file_type::directory) bytes += bytes_below(entry.path());
    if (status.type() != fs::file_type::regular) continue;
    const auto size = entry.file_size(ignored);
    if (!ignored) bytes += size;
  }
  return bytes;
}

}  // namespace

RemovableRun::RemovableRun(const std::string& run, const fs::path& runs_folder) {
  for (const fs::path& part : fs::path(run))
    if (part == "." || part == "..") throw UsageError("{}: name the run's own folder, without '.' and '..'", run);
  const fs::path records = run_finder().find(run, runs_folder);
  if (records.empty()) throw UsageError(run_finder().complaint(run, runs_folder));
  folder_ = fs::path(run) == records ? fs::path() : records.parent_path();
  if (folder_.empty()) throw UsageError("{} is a file: name the folder of the run", run);
  if (!folder_.has_filename()) folder_ = folder_.parent_path();  // a slash at its end
  std::error_code ignored;
  if (fs::symlink_status(folder_, ignored).type() != fs::file_type::directory)
    throw UsageError("{} is a link, and the run lies elsewhere: name that folder, or remove the link with rm",
                     folder_.string());
  if (!is_regular(records) || is_regular(folder_ / kSweepFile) || !has_records_of_run(folder_))
    throw UsageError("{} is not the folder of a run: remove it with rm, if that is what you want", folder_.string());
  const RunFacts facts = read_run_facts(records);
  if (facts.state == RunState::running)
    throw UsageError("the run {} is going on ({}): stop it first", folder_.string(), facts.holder);
  lock_ = std::make_unique<FolderLock>(folder_);
  if (!lock_->holder().empty())
    throw UsageError("the run {} is in use by {}: stop it first", folder_.string(), lock_->holder());
}

uint64_t RemovableRun::bytes() const { return bytes_below(folder_); }

void RemovableRun::remove() {
  std::error_code ignored;
  fs::path gone;
  for (int again = 1; gone.empty() || fs::exists(gone, ignored); ++again)
    gone = folder_.parent_path() / fmt::format("{}{}-{}", kRemoving, ::getpid(), again);
  if (::rename(folder_.c_str(), gone.c_str()) != 0)
    throw Error("cannot remove {}: {}", folder_.string(), std::strerror(errno));
  ::unlink((gone / kRecordsFile).c_str());  // the first to go: without them it is no run, whatever it is called
  remove_tree(gone);
  if (fs::exists(gone, ignored))
    throw Error("the run {} is gone, but not all of its files could be removed: what is left is in {}",
                folder_.string(), gone.string());
}

void finish_removals(const fs::path& runs_folder) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(runs_folder, ignored))
    if (entry.path().filename().string().rfind(kRemoving, 0) == 0) remove_tree(entry.path());
}

}  // namespace tutti
