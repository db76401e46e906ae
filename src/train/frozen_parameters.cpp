#include "train/frozen_parameters.h"

#include <fnmatch.h>

#include <algorithm>
#include <set>

#include "base/names.h"
#include "train/head.h"
#include "tutti/error.h"

namespace tutti {
namespace {

std::vector<std::string> between_commas(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    if (end > begin) parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

/// The name, then what it begins with up to each dot: layer1.0.conv1.weight, layer1.0.conv1, layer1.0, layer1.
std::vector<std::string> beginnings_of(const std::string& name) {
  std::vector<std::string> all{name};
  for (std::size_t dot = name.rfind('.'); dot != std::string::npos && dot > 0; dot = name.rfind('.', dot - 1))
    all.push_back(name.substr(0, dot));
  return all;
}

bool fits(const std::string& pattern, const std::string& name) {
  const std::vector<std::string> beginnings = beginnings_of(name);
  return std::any_of(beginnings.begin(), beginnings.end(),
                     [&](const std::string& text) { return ::fnmatch(pattern.c_str(), text.c_str(), 0) == 0; });
}

[[noreturn]] void refuse_pattern(const std::string& pattern, const Model& model) {
  std::set<std::string> known, first_parts;
  for (const auto& parameter : model.named_parameters()) {
    for (const std::string& text : beginnings_of(parameter.key())) known.insert(text);
    first_parts.insert(parameter.key().substr(0, parameter.key().find('.')));
  }
  const std::string nearest = nearest_name(pattern, {known.begin(), known.end()});
  std::string parts;
  for (const std::string& part : first_parts) parts += (parts.empty() ? "" : ", ") + part;
  throw UsageError("--freeze '{}' is no parameter of model '{}'{} Its parts: {}.", pattern, model.model_name(),
                   nearest.empty() ? "." : fmt::format("; did you mean '{}'?", nearest), parts);
}

}  // namespace

FrozenParameters::FrozenParameters(Model& model, const std::string& patterns) {
  if (patterns.empty()) return;
  const auto parameters = model.named_parameters();
  for (const std::string& pattern : between_commas(patterns)) {
    bool is_used = false;
    for (const auto& parameter : parameters) {
      if (!fits(pattern, parameter.key())) continue;
      is_used = true;
      parameter.value().set_requires_grad(false);
    }
    if (!is_used) refuse_pattern(pattern, model);
  }
  std::size_t tensors = 0;
  int64_t elements = 0, all = 0;
  for (const auto& parameter : parameters) {
    all += parameter.value().numel();
    if (parameter.value().requires_grad()) continue;
    ++tensors;
    elements += parameter.value().numel();
  }
  if (tensors == parameters.size())
    throw UsageError("--freeze '{}' leaves nothing of model '{}' to train: leave out its last layer, '{}'", patterns,
                     model.model_name(), last_layer_of(model));
  if (tensors == 0) return;
  summary_ = fmt::format("{} of {} tensors are frozen, {:.2f} of {:.2f} million parameters", tensors, parameters.size(),
                         static_cast<double>(elements) * 1e-6, static_cast<double>(all) * 1e-6);
  for (const auto& module : model.modules(/*include_self=*/false)) {
    auto norm = std::dynamic_pointer_cast<torch::nn::BatchNorm2dImpl>(module);
    if (norm && norm->weight.defined() && !norm->weight.requires_grad() && !norm->bias.requires_grad())
      norms_.push_back(std::move(norm));
  }
}

void FrozenParameters::enter_training(Model& model) const {
  model.train();
  for (const auto& norm : norms_) norm->eval();
}

}  // namespace tutti
