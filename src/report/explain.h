#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tutti/records.h"

namespace tutti {

/// Where the time of the steps of a run's last part went.
struct Explanation {
  RunConfig config;
  StepBreakdown breakdown;
  std::vector<double> step_s;           // of all its steps, on rank 0
  int epochs = 0;                       // in which stragglers were looked for
  std::map<int, int> straggled_epochs;  // of each rank that was one
};

/// From a run's records file. Throws Error when the records do not say.
Explanation read_explanation(const std::filesystem::path& file);
/// A few lines of text for a person.
std::string describe(const Explanation& explanation);
nlohmann::json to_json(const Explanation& explanation);

/// What would make the step shorter, where that is clear ("" where it is not). `wire` is the format gradients travel
/// in.
std::string advice(const StepBreakdown& breakdown, const std::string& wire);

}  // namespace tutti
