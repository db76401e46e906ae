#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <memory>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace tutti {

/// What evaluation counts; sums, so that ranks can be added up exactly.
struct EvalCounts {
  int64_t samples = 0;
  int64_t correct = 0;
  double loss_sum = 0;
};

/// A network together with its loss. Parameters carry the names PyTorch users know.
class Model : public torch::nn::Module {
 public:
  virtual const std::string& model_name() const = 0;
  /// The mean loss over the batch, a scalar to call backward on. Nothing in it reads a result back to the host.
  virtual torch::Tensor loss(const Batch& batch) = 0;
  /// Called in eval mode, without gradients.
  virtual EvalCounts evaluate(const Batch& batch) = 0;
};

std::vector<std::string> model_names();
/// Throws UsageError for an unknown name. Weights depend on torch's current random state.
std::shared_ptr<Model> make_model(const std::string& name);

}  // namespace tutti
