#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adamw.h>

#include <limits>

#include "support/rank_threads.h"
#include "tutti/error.h"
#include "tutti/tuned_engine.h"

namespace tutti {
namespace {

constexpr int kGroupedSteps = 8;

torch::nn::Linear grouped_layer() {
  torch::manual_seed(11);
  return torch::nn::Linear(6, 5);
}

/// Inputs of one rank; the loss is a square's mean, so that updates depend on weights.
torch::Tensor inputs_of(int rank, int step) {
  return torch::arange(24, torch::kFloat32).view({4, 6}).add(7 * rank + 3 * step).sin();
}

torch::Tensor loss_of(torch::nn::Linear& layer, const torch::Tensor& inputs) { return layer(inputs).pow(2).mean(); }

/// Weights decay and learn with 0.05, biases do not and learn with 0.02.
TuneOptions grouped_options(const std::string& strategy) {
  TuneOptions options;
  options.strategy = strategy;
  options.optimizer.name = "adamw";
  options.optimizer.weight_decay = 0.1;
  options.more_groups = {options.optimizer};
  options.more_groups[0].weight_decay = 0;
  return options;
}

TrainedTensors grouped_tensors(const torch::nn::Linear& layer) {
  TrainedTensors tensors = tensors_of(*layer);
  for (NamedTensor& parameter : tensors.parameters)
    if (parameter.name == "bias") parameter.group = 1;
  return tensors;
}

TEST(ParameterGroups, LearnWithTheStepsRateTimesTheirFactor) {
  for (const std::string name : {"sgd", "adam", "adamw", "lamb"}) {
    const auto train = [&](double factor, const std::vector<double>& rates) {
      auto layer = grouped_layer();
      torch::Tensor weights;
      const auto errors = run_rank_threads(1, [&](Communicator& comm) {
        TuneOptions options = grouped_options("bsp");
        options.optimizer.name = options.more_groups[0].name = name;
        options.more_groups[0].rate_factor = factor;
        TunedEngine engine(grouped_tensors(layer), comm, options);
        for (int step = 0; step < kGroupedSteps; ++step) {
          engine.begin_step();
          engine.backward(loss_of(layer, inputs_of(0, step)), 1);
          engine.finish_step(rates);
        }
        weights = torch::cat({layer->weight.detach().flatten(), layer->bias.detach()});
      });
      EXPECT_EQ(errors, std::vector<std::string>{""});
      return weights;
    };
    const torch::Tensor expected = train(1, {0.05, 0.05 * 2.5});
    EXPECT_TRUE(torch::equal(train(2.5, {0.05}), expected)) << name;
    EXPECT_FALSE(torch::equal(train(1, {0.05}), expected)) << name;
  }
}

TEST(ParameterGroups, HaveTheirOwnRatesAndOptionsUnderEveryBarrierAndShare) {
  auto expected = grouped_layer();
  std::vector<torch::optim::OptimizerParamGroup> groups;
  groups.emplace_back(std::vector<torch::Tensor>{expected->weight},
                      std::make_unique<torch::optim::AdamWOptions>(torch::optim::AdamWOptions(0.05).weight_decay(0.1)));
  groups.emplace_back(std::vector<torch::Tensor>{expected->bias},
                      std::make_unique<torch::optim::AdamWOptions>(torch::optim::AdamWOptions(0.02).weight_decay(0)));
  torch::optim::AdamW reference(groups);
  for (int step = 0; step < kGroupedSteps; ++step) {
    reference.zero_grad();
    ((loss_of(expected, inputs_of(0, step)) + loss_of(expected, inputs_of(1, step))) / 2).backward();
    reference.step();
  }
  for (const std::string strategy : {"bsp", "dear", "zero1"}) {
    std::vector<torch::nn::Linear> layers = {grouped_layer(), grouped_layer()};
    const auto errors = run_rank_threads(2, [&](Communicator& comm) {
      auto& layer = layers[static_cast<std::size_t>(comm.rank())];
      TunedEngine engine(grouped_tensors(layer), comm, grouped_options(strategy));
      for (int step = 0; step < kGroupedSteps; ++step) {
        engine.begin_step();
        engine.backward(loss_of(layer, inputs_of(comm.rank(), step)), 0.5);
        engine.finish_step({0.05, 0.02});
      }
      engine.settle();
      layer->weight.set_data(layer->weight.detach().clone());  // the engine's memory goes with it
      layer->bias.set_data(layer->bias.detach().clone());
    });
    for (const std::string& error : errors) EXPECT_EQ(error, "");
    for (const auto& layer : layers) {
      EXPECT_TRUE(torch::allclose(layer->weight, expected->weight, 1e-5, 1e-6)) << strategy;
      EXPECT_TRUE(torch::allclose(layer->bias, expected->bias, 1e-5, 1e-6)) << strategy;
    }
  }
}

/// What a rank ends with after `scale` was put on its losses, where one gradient of rank 1 overflows in step `bad`.
std::vector<torch::Tensor> scaled_run(double scale, int bad, std::vector<int>* left_out) {
  std::vector<torch::nn::Linear> layers = {grouped_layer(), grouped_layer()};
  const auto errors = run_rank_threads(2, [&](Communicator& comm) {
    auto& layer = layers[static_cast<std::size_t>(comm.rank())];
    TuneOptions options = grouped_options("dear");
    options.clip_norm = 0.5;
    TunedEngine engine(grouped_tensors(layer), comm, options);
    for (int step = 0; step < kGroupedSteps; ++step) {
      if (step == bad && left_out == nullptr) continue;  // the same steps without it
      engine.begin_step();
      torch::Tensor loss = loss_of(layer, inputs_of(comm.rank(), step)) * scale;
      if (step == bad && comm.rank() == 1) loss = loss * std::numeric_limits<float>::infinity();
      engine.backward(loss, 0.5);
      if (scale != 1) engine.engine().scale_gradients(1 / scale);
      engine.finish_step({0.05, 0.02});
      if (comm.rank() == 0 && left_out != nullptr && engine.engine().was_left_out()) left_out->push_back(step);
    }
    engine.settle();
    layer->weight.set_data(layer->weight.detach().clone());
    layer->bias.set_data(layer->bias.detach().clone());
  });
  for (const std::string& error : errors) EXPECT_EQ(error, "");
  EXPECT_TRUE(torch::equal(layers[0]->weight, layers[1]->weight));
  return {layers[0]->weight, layers[0]->bias};
}

TEST(ScaledGradients, LeaveAStepOutOnAllRanksWhereOneOverflows) {
  std::vector<int> left_out;
  const auto reached = scaled_run(1024, 4, &left_out);
  EXPECT_EQ(left_out, std::vector<int>{4});
  // 1024 is a power of two: scaling and unscaling change no bit. The step that was left out does not count for Adam.
  const auto expected = scaled_run(1, 4, nullptr);
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_TRUE(torch::allclose(reached[i], expected[i], 1e-6, 1e-7)) << reached[i] << expected[i];
}

TEST(ScaledGradients, AreRefusedWhereParametersAreUpdatedBeforeAllOfThemHaveCome) {
  std::vector<torch::nn::Linear> layers = {grouped_layer(), grouped_layer()};
  const auto errors = run_rank_threads(2, [&](Communicator& comm) {
    auto& layer = layers[static_cast<std::size_t>(comm.rank())];
    TunedEngine engine(grouped_tensors(layer), comm, grouped_options("dear"));
    for (int step = 0; step < kGroupedSteps; ++step) {
      engine.begin_step();
      engine.backward(loss_of(layer, inputs_of(comm.rank(), step)), 0.5);
      if (step + 1 == kGroupedSteps) engine.engine().scale_gradients(0.5);
      engine.finish_step({0.05, 0.02});
    }
  });
  for (const std::string& error : errors)
    EXPECT_NE(error.find("Scale gradients from the first step on"), std::string::npos) << error;
}

}  // namespace
}  // namespace tutti
