#pragma once

#include <filesystem>
#include <string>

#include "tutti/records.h"

namespace tutti {

/// Where the time of the steps of a run's last part went, by its records file: a few lines of text for a person. Throws
/// Error when the records do not say.
std::string explain(const std::filesystem::path& file);

/// What would make the step shorter, where that is clear ("" where it is not). `wire` is the format gradients travel
/// in.
std::string advice(const StepBreakdown& breakdown, const std::string& wire);

}  // namespace tutti
