#include "train/head.h"

#include "tutti/error.h"

namespace tutti {

std::string last_layer_of(const Model& model) {
  const std::string last = model.named_parameters().keys().back();
  return last.substr(0, last.rfind('.'));
}

TrainedTensors tensors_with_head(const Model& model) {
  const std::string head = last_layer_of(model) + ".";
  TrainedTensors tensors = tensors_of(model);
  bool is_trained = false;
  for (NamedTensor& parameter : tensors.parameters) {
    if (parameter.name.rfind(head, 0) != 0) continue;
    parameter.group = 1;
    is_trained = is_trained || parameter.tensor.requires_grad();
  }
  if (!is_trained)
    throw UsageError("--head-lr is for the last layer of model '{}', and --freeze leaves '{}' as it is",
                     model.model_name(), last_layer_of(model));
  return tensors;
}

}  // namespace tutti
