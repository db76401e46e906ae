#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tutti/dataset.h"
#include "tutti/metrics.h"
#include "tutti/model_options.h"

namespace tutti {

/// A network together with its loss. Parameters carry the names PyTorch users know.
class Model : public torch::nn::Module {
 public:
  explicit Model(std::string model_name) : model_name_(std::move(model_name)) {}
  const std::string& model_name() const { return model_name_; }
  /// What the network says of the samples, before the loss: logits.
  virtual std::vector<torch::Tensor> outputs(const Batch& batch) = 0;
  /// The mean loss over the batch, a scalar to call backward on. Nothing in it reads a result back to the host.
  virtual torch::Tensor loss(const Batch& batch) = 0;
  /// What evaluation counts. Called in eval mode, without gradients; nothing in it reads a result back either.
  virtual EvalSums count(const Batch& batch) = 0;
  /// The same, read back.
  EvalCounts evaluate(const Batch& batch) { return read_counts(count(batch)); }
  /// Whether a GPU's tensor cores compute it faster with images and weights in channels-last order.
  virtual bool prefers_channels_last() const { return false; }

 private:
  std::string model_name_;
};

/// A model that can be made by its name.
struct ModelSource {
  std::string name;
  SampleTraits natural;  // the data that it was published with
  std::shared_ptr<Model> (*make)(const ModelOptions& options) = nullptr;
  bool has_size = false;  // takes width and depth
  bool can_checkpoint = false;
};

}  // namespace tutti
