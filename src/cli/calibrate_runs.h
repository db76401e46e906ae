#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace tutti {

struct FittedParameter;

/// Predicts runs of our own from what one of each group measured, fits the engine's costs, and prints both beside what
/// was measured. `held_out`: models, transports, networks or numbers of ranks that are predicted and not fitted.
int calibrate_runs(const std::vector<std::string>& folders, const std::vector<std::string>& held_out, bool all_rows,
                   bool is_json);

/// Of what was fitted, for --json; `uncertainty` is null where the rows do not tell.
nlohmann::json fitted_parameter(const std::string& name, const FittedParameter& found, double scale,
                                const std::string& unit);

}  // namespace tutti
