#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "runs/run_facts.h"

namespace tutti {

/// The runs at a place, by name: it is one, or a folder that holds some, or a sweep, whose cells are runs. What begins
/// with a dot is none.
std::vector<std::filesystem::path> run_folders(const std::filesystem::path& place);

/// Those of several places, each once, the one that began last first. Throws UsageError for a place that is no folder.
std::vector<RunFacts> find_runs(const std::vector<std::string>& places);

}  // namespace tutti
