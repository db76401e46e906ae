#pragma once

#include <torch/nn/modules/batchnorm.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model/model.h"

namespace tutti {

/// Parameters that training leaves as they are: they require no gradient, so no plan and no optimizer knows them. A
/// batch normalization whose weight and bias are both frozen stays in evaluation mode: it normalizes with the averages
/// that it came with, and leaves them alone.
class FrozenParameters {
 public:
  FrozenParameters() = default;
  /// `patterns`: between commas, each a parameter's name or the beginning of one up to a dot, with * ? [] as in a
  /// shell. Throws UsageError for a pattern that fits nothing, with the nearest name, and where nothing is left to
  /// train.
  FrozenParameters(Model& model, const std::string& patterns);

  /// Puts the model into training mode, but for what is frozen.
  void enter_training(Model& model) const;
  /// "60 of 62 tensors are frozen, 11.2 of 11.7 million parameters"; "" where none is.
  const std::string& summary() const { return summary_; }

 private:
  std::vector<std::shared_ptr<torch::nn::BatchNorm2dImpl>> norms_;
  std::string summary_;
};

}  // namespace tutti
