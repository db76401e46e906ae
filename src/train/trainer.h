#pragma once

#include "comm/launch_env.h"
#include "train/options.h"

namespace tutti {

/// Trains one model as one rank of `env`, from the data to the saved weights. Returns the exit code: 0, or kExitSaved
/// when a signal stopped it after a checkpoint. Throws Error.
int train(const TrainOptions& options, const LaunchEnv& env);

}  // namespace tutti
