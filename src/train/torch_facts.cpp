#include "train/torch_facts.h"

#include <fmt/format.h>
#include <torch/cuda.h>
#include <torch/version.h>

#include "model/model.h"
#include "train/gpu_names.h"

namespace tutti {
namespace {

std::vector<std::string> parameters_of(const std::string& name) {
  ModelOptions options;
  options.data = natural_data(name);
  options.random_weights = false;
  std::vector<std::string> parameters;
  for (const auto& parameter : make_model(name, options)->named_parameters()) {
    std::string shape;
    for (const int64_t size : parameter.value().sizes()) shape += fmt::format("{}{}", shape.empty() ? "" : "×", size);
    parameters.push_back(parameter.key() + " " + shape);
  }
  return parameters;
}

}  // namespace

TorchFacts ask_torch(const std::string& model) {
  TorchFacts facts;
  facts.libtorch = TORCH_VERSION;
  facts.gpus = gpu_names();
  facts.model = model;
  if (!model.empty()) facts.parameters = parameters_of(model);
  return facts;
}

int gpu_count() { return torch::cuda::is_available() ? static_cast<int>(torch::cuda::device_count()) : 0; }

}  // namespace tutti
