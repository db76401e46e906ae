#pragma once

#include <string>
#include <vector>

namespace tutti {

/// Predicts runs of our own from what one of each group measured, fits the engine's costs, and prints both beside what
/// was measured. `held_out`: models, transports, networks or numbers of ranks that are predicted and not fitted.
int calibrate_runs(const std::vector<std::string>& folders, const std::vector<std::string>& held_out, bool all_rows);

}  // namespace tutti
