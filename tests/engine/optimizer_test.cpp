#include "engine/optimizer.h"

#include <gtest/gtest.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include "tutti/error.h"

namespace tutti {
namespace {

constexpr int64_t kLength = 1000;

/// The largest difference between 100 of our steps and 100 of torch's on the same gradients, over the values' size.
double difference_after_100_steps(const OptimizerOptions& options, torch::optim::Optimizer& reference,
                                  torch::Tensor theirs, double learning_rate) {
  torch::Tensor ours = theirs.detach().clone();
  const auto optimizer = make_optimizer(options, ours);
  for (int64_t step = 1; step <= 100; ++step) {
    const torch::Tensor gradient = torch::randn({kLength});
    theirs.mutable_grad() = gradient;
    reference.step();
    // In three slices: a result may not depend on them.
    for (const auto& [begin, end] : {std::pair<int64_t, int64_t>{0, 7}, {7, 640}, {640, kLength}})
      optimizer->update({ours, gradient, begin, end, step}, learning_rate, {});
  }
  return ((ours - theirs).abs().max() / theirs.abs().max()).item<double>();
}

torch::Tensor start_values() {
  torch::manual_seed(3);
  return torch::randn({kLength}).requires_grad_();
}

TEST(Sgd, EqualsTorchOver100Steps) {
  for (const double momentum : {0.0, 0.9})
    for (const double decay : {0.0, 0.05})
      for (const bool nesterov : {false, true}) {
        if (nesterov && momentum == 0) continue;
        torch::Tensor values = start_values();
        torch::optim::SGD reference(
            {values}, torch::optim::SGDOptions(0.05).momentum(momentum).weight_decay(decay).nesterov(nesterov));
        OptimizerOptions options;
        options.momentum = momentum;
        options.weight_decay = decay;
        options.nesterov = nesterov;
        EXPECT_LT(difference_after_100_steps(options, reference, values, 0.05), 2e-6) << momentum << decay << nesterov;
      }
}

TEST(Adam, EqualsTorchOver100Steps) {
  for (const double decay : {0.0, 0.05}) {
    torch::Tensor values = start_values();
    torch::optim::Adam reference({values}, torch::optim::AdamOptions(0.01).weight_decay(decay));
    OptimizerOptions options;
    options.name = "adam";
    options.weight_decay = decay;
    EXPECT_LT(difference_after_100_steps(options, reference, values, 0.01), 2e-6) << decay;
  }
}

TEST(AdamW, EqualsTorchOver100Steps) {
  torch::Tensor values = start_values();
  torch::optim::AdamW reference({values}, torch::optim::AdamWOptions(0.01).weight_decay(0.1));
  OptimizerOptions options;
  options.name = "adamw";
  options.weight_decay = 0.1;
  EXPECT_LT(difference_after_100_steps(options, reference, values, 0.01), 2e-6);
}

TEST(Optimizer, MultipliesGradientsByTheScaleFirst) {
  OptimizerOptions options;
  torch::Tensor scaled = torch::zeros({4}), plain = torch::zeros({4});
  const torch::Tensor gradient = torch::arange(4, torch::kFloat32);
  make_optimizer(options, scaled)->update({scaled, gradient, 0, 4, 1}, 0.1, torch::full({}, 0.25));
  make_optimizer(options, plain)->update({plain, gradient * 0.25, 0, 4, 1}, 0.1, {});
  EXPECT_TRUE(torch::equal(scaled, plain));
}

TEST(Optimizer, RefusesWhatMakesNoSense) {
  const torch::Tensor like = torch::zeros({4});
  OptimizerOptions unknown;
  unknown.name = "adm";
  EXPECT_THROW(make_optimizer(unknown, like), UsageError);
  OptimizerOptions momentum;
  momentum.momentum = 1.5;
  EXPECT_THROW(make_optimizer(momentum, like), UsageError);
  OptimizerOptions nesterov;
  nesterov.nesterov = true;
  EXPECT_THROW(make_optimizer(nesterov, like), UsageError);
}

}  // namespace
}  // namespace tutti
