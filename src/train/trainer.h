#pragma once

#include "comm/launch_env.h"
#include "train/options.h"

namespace tutti {

/// Trains one model as one rank of `env`, from the data to the saved weights. Throws Error.
void train(const TrainOptions& options, const LaunchEnv& env);

}  // namespace tutti
