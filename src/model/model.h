#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <memory>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "model/metrics.h"
#include "options/model_options.h"

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

/// "images 1×28×28, 10 classes", for people.
std::string describe(const SampleTraits& traits);

std::vector<std::string> model_names();

/// The data that the model was published with; throws UsageError for an unknown name.
SampleTraits natural_data(const std::string& model);

/// Throws UsageError for an unknown name, for data that the model cannot take (naming those that can), and for options
/// that it does not have. Weights depend on torch's current random state.
std::shared_ptr<Model> make_model(const std::string& name, const ModelOptions& options);
std::shared_ptr<Model> make_model(const std::string& name);

/// Gives the weights of convolutions channels-last strides. Before an engine takes the model over, which keeps them so.
void use_channels_last(torch::nn::Module& model);

}  // namespace tutti
