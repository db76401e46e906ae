#pragma once

#include <string>

#include "model/model.h"
#include "tutti/engine.h"

namespace tutti {

/// The module that has the model's last parameter: "fc".
std::string last_layer_of(const Model& model);

/// What is trained of the model, with the last layer's parameters in a group of their own, the first of `more_groups`.
/// Throws UsageError where they are frozen.
TrainedTensors tensors_with_head(const Model& model);

}  // namespace tutti
