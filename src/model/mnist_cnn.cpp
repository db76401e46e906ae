#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include "model/ops/conv_pool.h"
#include "model/ops/dropout.h"
#include "model/ops/first_conv.h"
#include "model/ops/linear.h"
#include "model/zoo.h"

namespace tutti {
namespace {

class MnistCnn : public Model {
 public:
  MnistCnn()
      : conv1_(register_module("conv1", torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 32, 3)))),
        conv2_(register_module("conv2", torch::nn::Conv2d(torch::nn::Conv2dOptions(32, 64, 3)))),
        fc1_(register_module("fc1", torch::nn::Linear(9216, 128))),
        fc2_(register_module("fc2", torch::nn::Linear(128, 10))) {}

  const std::string& model_name() const override { return name_; }

  torch::Tensor loss(const Batch& batch) override { return torch::cross_entropy_loss(logits(batch), batch.target); }

  EvalCounts evaluate(const Batch& batch) override {
    if (batch.size == 0) return {};
    const torch::Tensor scores = logits(batch);
    EvalCounts counts;
    counts.samples = batch.size;
    counts.correct = scores.argmax(1).eq(batch.target).sum().item<int64_t>();
    counts.loss_sum = torch::cross_entropy_loss(scores, batch.target, /*weight=*/{}, at::Reduction::Sum).item<double>();
    return counts;
  }

 private:
  torch::Tensor logits(const Batch& batch) {
    torch::Tensor x = first_conv3x3_relu(batch.inputs[0], conv1_->weight, conv1_->bias);
    x = conv3x3_relu_pool2(x, conv2_->weight, conv2_->bias);
    if (is_training()) x = dropout(x, 0.25);
    x = torch::relu(linear(x.flatten(1), fc1_->weight, fc1_->bias));
    if (is_training()) x = dropout(x, 0.5);
    return linear(x, fc2_->weight, fc2_->bias);
  }

  const std::string name_ = "mnist-cnn";
  torch::nn::Conv2d conv1_;
  torch::nn::Conv2d conv2_;
  torch::nn::Linear fc1_;
  torch::nn::Linear fc2_;
};

}  // namespace

std::shared_ptr<Model> make_mnist_cnn() { return std::make_shared<MnistCnn>(); }

}  // namespace tutti
