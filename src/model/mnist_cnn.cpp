#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include "model/ops/conv_pool.h"
#include "model/ops/dropout.h"
#include "model/ops/first_conv.h"
#include "model/ops/linear.h"
#include "model/zoo.h"

namespace tutti {
namespace {

constexpr const char* kMnistCnn = "mnist-cnn";

class MnistCnn : public Model {
 public:
  explicit MnistCnn(const SampleTraits& data)
      : Model(kMnistCnn),
        conv1_(register_module("conv1", torch::nn::Conv2d(torch::nn::Conv2dOptions(data.shape[0], 32, 3)))),
        conv2_(register_module("conv2", torch::nn::Conv2d(torch::nn::Conv2dOptions(32, 64, 3)))),
        fc1_(register_module("fc1", torch::nn::Linear(features(data), 128))),
        fc2_(register_module("fc2", torch::nn::Linear(128, data.classes))) {}

  std::vector<torch::Tensor> outputs(const Batch& batch) override { return {logits(batch)}; }
  torch::Tensor loss(const Batch& batch) override { return torch::cross_entropy_loss(logits(batch), batch.target); }
  EvalSums count(const Batch& batch) override { return count_classes(logits(batch), batch.target); }

 private:
  /// What is left of an image after two 3×3 convolutions and a 2×2 maximum.
  static int64_t features(const SampleTraits& data) {
    return 64 * ((data.shape[1] - 4) / 2) * ((data.shape[2] - 4) / 2);
  }

  torch::Tensor logits(const Batch& batch) {
    torch::Tensor x = first_conv3x3_relu(batch.inputs[0], conv1_->weight, conv1_->bias);
    x = conv3x3_relu_pool2(x, conv2_->weight, conv2_->bias);
    if (is_training()) x = dropout(x, 0.25);
    x = torch::relu(linear(x.flatten(1), fc1_->weight, fc1_->bias));
    if (is_training()) x = dropout(x, 0.5);
    return linear(x, fc2_->weight, fc2_->bias);
  }

  torch::nn::Conv2d conv1_;
  torch::nn::Conv2d conv2_;
  torch::nn::Linear fc1_;
  torch::nn::Linear fc2_;
};

}  // namespace

std::shared_ptr<Model> make_mnist_cnn(const ModelOptions& options) {
  if (options.data.shape[1] < 6 || options.data.shape[2] < 6)
    refuse_data(kMnistCnn, options, "it takes images of at least 6×6 pixels");
  return std::make_shared<MnistCnn>(options.data);
}

}  // namespace tutti
