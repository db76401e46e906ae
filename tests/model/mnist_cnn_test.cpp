#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/optim/sgd.h>

#include "model/model.h"
#include "tutti/error.h"

namespace tutti {
namespace {

using ::testing::HasSubstr;

Batch digits_batch(int64_t first, int64_t count) {
  static const TrainTest data = open_data({});
  Batch batch = data.train->make_batch(count, false);
  for (int64_t row = 0; row < count; ++row) data.train->load(first + row, row, batch);
  return batch;
}

/// PyTorch's MNIST example, from torch's own operations and this model's weights, without dropout.
torch::Tensor example_logits(const Model& model, const torch::Tensor& images) {
  const auto parameters = model.named_parameters();
  torch::Tensor x = torch::relu(torch::conv2d(images, parameters["conv1.weight"], parameters["conv1.bias"]));
  x = torch::relu(torch::conv2d(x, parameters["conv2.weight"], parameters["conv2.bias"]));
  x = torch::max_pool2d(x, 2).flatten(1);
  x = torch::relu(torch::linear(x, parameters["fc1.weight"], parameters["fc1.bias"]));
  return torch::linear(x, parameters["fc2.weight"], parameters["fc2.bias"]);
}

TEST(MnistCnn, HasTheParametersOfPyTorchsExample) {
  const auto model = make_model("mnist-cnn");
  EXPECT_EQ(model->model_name(), "mnist-cnn");
  std::vector<std::string> names;
  int64_t count = 0;
  for (const auto& parameter : model->named_parameters()) {
    names.push_back(parameter.key());
    count += parameter.value().numel();
  }
  EXPECT_EQ(names, (std::vector<std::string>{"conv1.weight", "conv1.bias", "conv2.weight", "conv2.bias", "fc1.weight",
                                             "fc1.bias", "fc2.weight", "fc2.bias"}));
  EXPECT_EQ(count, 1199882);
}

TEST(MnistCnn, EvaluatesAsTheExampleDoes) {
  torch::manual_seed(1);
  const auto model = make_model("mnist-cnn");
  model->eval();
  const torch::NoGradGuard no_grad;
  const Batch batch = digits_batch(0, 50);
  const torch::Tensor logits = example_logits(*model, batch.inputs[0]);
  const torch::Tensor losses = -torch::log_softmax(logits, 1).gather(1, batch.target.unsqueeze(1));
  const EvalCounts counts = model->evaluate(batch);
  EXPECT_EQ(counts.samples, 50);
  ASSERT_EQ(counts.metrics.size(), 1U);
  EXPECT_EQ(counts.metrics[0].name, "accuracy");
  EXPECT_EQ(counts.metrics[0].of, 50);
  EXPECT_EQ(counts.metrics[0].hits, logits.argmax(1).eq(batch.target).sum().item<int64_t>());
  EXPECT_NEAR(counts.loss_sum, losses.sum().item<double>(), 1e-3);
  EXPECT_NEAR(model->loss(batch).item<double>(), losses.mean().item<double>(), 1e-5);
}

TEST(MnistCnn, GradientsAreThoseOfTheExample) {
  torch::manual_seed(1);
  const auto model = make_model("mnist-cnn");
  model->eval();  // no dropout
  const Batch batch = digits_batch(100, 16);
  model->loss(batch).backward();
  std::vector<torch::Tensor> gradients;
  for (const torch::Tensor& parameter : model->parameters()) gradients.push_back(parameter.grad().clone());
  model->zero_grad();
  torch::nll_loss(torch::log_softmax(example_logits(*model, batch.inputs[0]), 1), batch.target).backward();
  for (size_t i = 0; i < gradients.size(); ++i) {
    const torch::Tensor expected = model->parameters()[i].grad();
    EXPECT_LT(((gradients[i] - expected).abs().max() / expected.abs().max()).item<double>(), 1e-4)
        << model->named_parameters()[i].key();
  }
}

TEST(MnistCnn, AnEmptyBatchCountsNothing) {
  const auto model = make_model("mnist-cnn");
  EXPECT_EQ(model->evaluate(digits_batch(0, 0)).samples, 0);
}

TEST(MnistCnn, TrainingIsRepeatableAndLearns) {
  const auto train = [] {
    torch::manual_seed(5);
    const auto model = make_model("mnist-cnn");
    torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.02).momentum(0.9));
    std::vector<float> losses;
    for (int step = 0; step < 30; ++step) {
      optimizer.zero_grad();
      torch::Tensor loss = model->loss(digits_batch(32 * step, 32));
      loss.backward();
      optimizer.step();
      losses.push_back(loss.item<float>());
    }
    return losses;
  };
  const std::vector<float> losses = train();
  EXPECT_EQ(losses, train());
  EXPECT_GT(losses.front(), 2);
  EXPECT_LT((losses[27] + losses[28] + losses[29]) / 3, 1.5);
}

TEST(Models, AnUnknownNameIsAUsageErrorWithASuggestion) {
  try {
    make_model("mnist-cn");
    FAIL() << "no error";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("did you mean 'mnist-cnn'"));
  }
  EXPECT_THAT(model_names(), ::testing::Contains("mnist-cnn"));
}

}  // namespace
}  // namespace tutti
