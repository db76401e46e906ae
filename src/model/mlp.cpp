// A multilayer perceptron: linear layers with ReLU and dropout between them, fc1, fc2, …, of which the last is the
// classifier.

#include <torch/nn/modules/linear.h>

#include "model/ops/dropout.h"
#include "model/ops/linear.h"
#include "model/zoo.h"

namespace tutti {
namespace {

constexpr int64_t kMlpWidth = 256;
constexpr int64_t kMlpHiddenLayers = 2;
constexpr double kMlpDropout = 0.1;

class Mlp : public Model {
 public:
  Mlp(const SampleTraits& data, int64_t width, int64_t hidden_layers) : Model("mlp") {
    int64_t inputs = data.shape[0];
    for (int64_t i = 0; i <= hidden_layers; ++i) {
      const int64_t outputs = i == hidden_layers ? data.classes : width;
      layers_.push_back(register_module("fc" + std::to_string(i + 1), torch::nn::Linear(inputs, outputs)));
      inputs = outputs;
    }
  }

  std::vector<torch::Tensor> outputs(const Batch& batch) override { return {logits(batch)}; }
  torch::Tensor loss(const Batch& batch) override { return torch::cross_entropy_loss(logits(batch), batch.target); }
  EvalSums count(const Batch& batch) override { return count_classes(logits(batch), batch.target); }

 private:
  torch::Tensor logits(const Batch& batch) {
    torch::Tensor x = batch.inputs[0];
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      x = linear(x, layers_[i]->weight, layers_[i]->bias);
      if (i + 1 == layers_.size()) break;
      x = torch::relu(x);
      if (is_training()) x = dropout(x, kMlpDropout);
    }
    return x;
  }

  std::vector<torch::nn::Linear> layers_;
};

}  // namespace

std::shared_ptr<Model> make_mlp(const ModelOptions& options) {
  return std::make_shared<Mlp>(options.data, options.width > 0 ? options.width : kMlpWidth,
                               options.depth > 0 ? options.depth : kMlpHiddenLayers);
}

}  // namespace tutti
