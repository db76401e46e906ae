// Activation checkpointing changes what is kept, not what is computed.

#include <gtest/gtest.h>
#include <torch/types.h>

#include <tuple>

#include "model/ops/checkpoint.h"
#include "model/ops/dropout.h"
#include "small_models.h"
#include "support/rank_threads.h"
#include "tutti/tuned_engine.h"

namespace tutti {
namespace {

using Tensors = std::vector<torch::Tensor>;

std::shared_ptr<Model> make_small(const std::string& name, bool checkpoints) {
  torch::manual_seed(1);
  ModelOptions options = small_options(name);
  options.checkpoint_activations = checkpoints;
  return make_model(name, options);
}

/// Loss, gradients and buffers after one training forward and backward, dropout included, and what is drawn next.
Tensors one_step(const std::string& name, bool checkpoints, const Place& place) {
  const auto model = make_small(name, checkpoints);
  Batch batch = example_batch(small_options(name).data, 4);
  move_to(place, *model, batch);
  const auto draw = [&] { return torch::rand({3}, place.device); };
  torch::manual_seed(7);
  torch::Tensor loss;
  {
    const Bf16Autocast autocast(place.is_bf16);
    loss = model->loss(batch);
  }
  const torch::Tensor drawn_between = draw();
  loss.backward();
  Tensors all{loss.detach(), drawn_between, draw()};
  for (const torch::Tensor& parameter : model->parameters()) all.push_back(parameter.grad());
  for (const torch::Tensor& buffer : model->buffers()) all.push_back(buffer);
  return all;
}

class Checkpointing : public testing::TestWithParam<std::tuple<std::string, Place>> {
 protected:
  const std::string name_ = std::get<0>(GetParam());
  const Place place_ = std::get<1>(GetParam());
};

TEST_P(Checkpointing, GivesTheSameLossGradientsBuffersAndRandomNumbers) {
  const Tensors plain = one_step(name_, false, place_), checkpointed = one_step(name_, true, place_);
  ASSERT_EQ(plain.size(), checkpointed.size());
  for (std::size_t i = 0; i < plain.size(); ++i) {
    if (place_.device.is_cpu())
      EXPECT_TRUE(torch::equal(plain[i], checkpointed[i])) << i;
    else  // some of its sums come in any order
      EXPECT_TRUE(torch::allclose(plain[i], checkpointed[i], place_.is_bf16 ? 1e-2 : 1e-4, 1e-5)) << i;
  }
}

/// Weights after a few steps of two ranks; without dropout, because ranks that are threads share one generator.
Tensors weights_after(const std::string& name, bool checkpoints, const std::string& strategy) {
  std::vector<std::shared_ptr<Model>> models;
  for (int rank = 0; rank < 2; ++rank) {
    models.push_back(make_small(name, checkpoints));
    if (name != "unet") models.back()->eval();
  }
  torch::manual_seed(5);
  Tensors weights;
  std::vector<Batch> batches;
  for (int i = 0; i < 12; ++i) batches.push_back(example_batch(small_options(name).data, 2));
  const auto errors = run_rank_threads(2, [&](Communicator& comm) {
    Model& model = *models[static_cast<std::size_t>(comm.rank())];
    TuneOptions options;
    options.strategy = strategy;
    options.optimizer.momentum = 0.9;
    TunedEngine engine(model, comm, options);
    for (std::size_t step = 0; step < 6; ++step) {
      engine.begin_step();
      engine.backward(model.loss(batches[2 * step + static_cast<std::size_t>(comm.rank())]), 0.5);
      engine.finish_step(0.01);
    }
    engine.settle();
    if (comm.rank() != 0) return;
    for (const torch::Tensor& parameter : model.parameters()) weights.push_back(parameter.detach().clone());
    for (const torch::Tensor& buffer : model.buffers()) weights.push_back(buffer.clone());
  });
  for (const std::string& error : errors) EXPECT_EQ(error, "");
  return weights;
}

INSTANTIATE_TEST_SUITE_P(Models, Checkpointing,
                         testing::Combine(testing::Values("unet", "transformer", "bert-large"),
                                          testing::ValuesIn(places())),
                         [](const auto& test) { return test_name(std::get<0>(test.param), std::get<1>(test.param)); });

TEST(Checkpoint, WorksWithTheEngineUnderEveryWayOfSynchronizing) {
  for (const char* name : {"unet", "transformer", "bert-large"}) {
    const Tensors expected = weights_after(name, false, "bsp");
    for (const char* strategy : {"bsp", "wfbp", "bytescheduler", "dear"}) {
      const Tensors weights = weights_after(name, true, strategy);
      ASSERT_EQ(weights.size(), expected.size());
      for (std::size_t i = 0; i < weights.size(); ++i)
        EXPECT_TRUE(torch::equal(weights[i], expected[i])) << name << ", " << strategy << ", tensor " << i;
    }
  }
}

TEST(Checkpoint, GivesGradientsToInputsAndParametersAlike) {
  const torch::Tensor a = torch::randn({5}).requires_grad_(), b = torch::randn({5}).requires_grad_();
  const torch::Tensor weight = torch::randn({5}).requires_grad_();
  const auto block = [weight](const Tensors& in) { return torch::sin(in[0] * weight) * in[1]; };
  checkpoint(block, {a, b.detach()}).sum().backward();
  const torch::Tensor weight_gradient = weight.grad().clone();
  const torch::Tensor a_gradient = a.grad().clone();
  weight.mutable_grad().reset();
  a.mutable_grad().reset();
  block({a, b.detach()}).sum().backward();
  EXPECT_TRUE(a_gradient.equal(a.grad()));
  EXPECT_TRUE(weight_gradient.equal(weight.grad()));
  EXPECT_FALSE(b.grad().defined());
}

TEST(Checkpoint, RunsTheBlockOnceWithoutGradients) {
  int runs = 0;
  const auto block = [&runs](const Tensors& in) {
    ++runs;
    EXPECT_FALSE(is_second_run());
    return in[0] * 2;
  };
  const torch::NoGradGuard no_grad;
  checkpoint(block, {torch::ones({2})});
  EXPECT_EQ(runs, 1);
}

TEST(Checkpoint, RunsTheBlockAgainInBackwardAndSaysSo) {
  const torch::Tensor weight = torch::ones({2}).requires_grad_();
  std::vector<bool> runs;
  const auto block = [&](const Tensors& in) {
    runs.push_back(is_second_run());
    return dropout(in[0] * weight, 0.5);
  };
  const torch::Tensor result = checkpoint(block, {torch::ones({2})});
  result.sum().backward();
  EXPECT_EQ(runs, (std::vector<bool>{false, true}));
  EXPECT_TRUE(weight.grad().equal(result.detach()));  // the same elements were dropped
  EXPECT_FALSE(is_second_run());
}

}  // namespace
}  // namespace tutti
