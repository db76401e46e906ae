#pragma once

#include <string>

#include "probe/facts.h"

namespace tutti {

/// What the libtorch of this program says of itself and of GPUs, and the parameters of a model unless its name is "".
/// Throws UsageError for an unknown one.
TorchFacts ask_torch(const std::string& model);

/// That libtorch can use; asking does not take hold of one, so that a parent of ranks may.
int gpu_count();

}  // namespace tutti
