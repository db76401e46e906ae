#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "report/step_breakdown.h"

namespace tutti {

/// The records of a run, in order. A last line without an end, as a full disk leaves it, is skipped; throws Error
/// naming any other line that is not a record.
std::vector<nlohmann::json> read_records(const std::filesystem::path& file);

/// `run` as a person names it: a run's folder or its records file, or its name in `runs_folder`. Throws Error when
/// there is none, naming the nearest.
std::filesystem::path find_records(const std::string& run, const std::filesystem::path& runs_folder);

/// Where the time of a run's steps went, in a few lines of text for a person. Throws Error when the records do not say.
std::string explain(const std::vector<nlohmann::json>& records);

/// What would make the step shorter, where that is clear ("" where it is not). `wire` is the format gradients travel
/// in.
std::string advice(const StepBreakdown& breakdown, const std::string& wire);

}  // namespace tutti
