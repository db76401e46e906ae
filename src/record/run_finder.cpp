#include "record/run_finder.h"

#include <fmt/format.h>

#include <vector>

#include "base/names.h"
#include "record/record_file.h"
#include "tutti/error.h"

namespace tutti {

namespace fs = std::filesystem;

fs::path RunFinder::find(const std::string& run, const fs::path& runs_folder) const {
  for (const fs::path& place : {fs::path(run), runs_folder / run})
    if (fs::path found = look(place); !found.empty()) return found;
  return {};
}

std::string RunFinder::complaint(const std::string& run, const fs::path& runs_folder) const {
  std::vector<std::string> known;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(runs_folder, ignored))
    if (!look(entry.path()).empty()) known.push_back(entry.path().filename().string());
  const std::string nearest = nearest_name(run, known);
  const std::string advice = nearest.empty() ? hint : fmt::format("did you mean '{}'?", nearest);
  return fmt::format("no {} '{}': neither {} nor a name in {}{}{}", what, run, where, runs_folder.string(),
                     advice.empty() ? "" : "; ", advice);
}

fs::path RunFinder::require(const std::string& run, const fs::path& runs_folder) const {
  fs::path found = find(run, runs_folder);
  if (found.empty()) throw Error(complaint(run, runs_folder));
  return found;
}

RunFinder run_finder() {
  return {"run", fmt::format("a folder with {}", kRecordsFile), "name one with `tutti train --name`",
          [](const fs::path& place) {
            if (fs::is_regular_file(place)) return place;
            return fs::is_regular_file(place / kRecordsFile) ? place / kRecordsFile : fs::path();
          }};
}

RunFinder run_or_sweep_finder() {
  return {"run or sweep", fmt::format("a file, nor a folder with {} or {},", kCellsFile, kRecordsFile), "",
          [](const fs::path& place) {
            if (fs::is_regular_file(place)) return place;
            for (const char* name : {kCellsFile, kRecordsFile})
              if (fs::is_regular_file(place / name)) return place / name;
            // A sweep that was stopped before its first cell ended.
            return fs::is_regular_file(place / kSweepFile) ? place / kCellsFile : fs::path();
          }};
}

}  // namespace tutti
