#include "runs/find_runs.h"

#include <algorithm>
#include <set>

#include "record/record_file.h"
#include "tutti/error.h"

namespace tutti {

namespace fs = std::filesystem;

std::vector<fs::path> run_folders(const fs::path& place) {
  std::error_code ignored;
  if (fs::is_regular_file(place / kRecordsFile, ignored)) return {place};
  std::vector<fs::path> found;
  const fs::path folder = fs::is_regular_file(place / kSweepFile, ignored) ? place / "cells" : place;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const bool is_hidden = entry.path().filename().string()[0] == '.';  // such as a run that is being removed
    if (!is_hidden && fs::is_regular_file(entry.path() / kRecordsFile, ignored)) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<RunFacts> find_runs(const std::vector<std::string>& places) {
  std::set<fs::path> seen;
  std::vector<RunFacts> runs;
  for (const std::string& place : places) {
    std::error_code ignored;
    if (!fs::is_directory(place, ignored)) throw UsageError("{}: there is no such folder", place);
    for (const fs::path& folder : run_folders(place))
      if (seen.insert(fs::weakly_canonical(folder, ignored)).second)
        runs.push_back(read_run_facts(folder / kRecordsFile));
  }
  std::stable_sort(runs.begin(), runs.end(),
                   [](const RunFacts& a, const RunFacts& b) { return a.began_s > b.began_s; });
  return runs;
}

}  // namespace tutti
