// An engine takes weights over in channels-last order and leaves them in it; the arithmetic stays the same.

#include <gtest/gtest.h>

#include "model/example_batch.h"
#include "model/model.h"
#include "support/rank_threads.h"
#include "tutti/tuned_engine.h"

namespace tutti {
namespace {

struct LayoutOutcome {
  std::vector<torch::Tensor> weights;
  std::vector<std::pair<std::string, torch::Tensor>> optimizer_state;
};

LayoutOutcome train(bool channels_last) {
  ModelOptions options;
  options.width = 8;
  options.depth = 2;
  options.data = {SampleKind::segmentation, {3, 16, 16}};
  LayoutOutcome outcome;
  const auto errors = run_rank_threads(1, [&](Communicator& comm) {
    torch::manual_seed(4);
    const auto model = make_model("unet", options);
    if (channels_last) use_channels_last(*model);
    TuneOptions engine_options;
    engine_options.optimizer.momentum = 0.9;
    TunedEngine engine(*model, comm, engine_options);
    for (int step = 0; step < 6; ++step) {
      Batch batch = example_batch(options.data, 2);
      if (channels_last) batch.inputs[0] = batch.inputs[0].contiguous(torch::MemoryFormat::ChannelsLast);
      engine.begin_step();
      engine.backward(model->loss(batch), 1.0);
      engine.finish_step(0.05);
    }
    engine.settle();
    for (const torch::Tensor& parameter : model->parameters()) {
      if (channels_last && parameter.dim() == 4) {
        EXPECT_TRUE(parameter.is_contiguous(torch::MemoryFormat::ChannelsLast));
        EXPECT_TRUE(parameter.grad().is_contiguous(torch::MemoryFormat::ChannelsLast));
      }
      outcome.weights.push_back(parameter.detach().clone());
    }
    outcome.optimizer_state = engine.engine().optimizer_state();
  });
  EXPECT_EQ(errors[0], "");
  return outcome;
}

TEST(ChannelsLast, TrainsToTheSameWeightsAndOptimizerState) {
  const LayoutOutcome usual = train(false), channels_last = train(true);
  ASSERT_EQ(usual.weights.size(), channels_last.weights.size());
  for (std::size_t i = 0; i < usual.weights.size(); ++i)
    EXPECT_TRUE(torch::allclose(usual.weights[i], channels_last.weights[i], 1e-3, 1e-4)) << i;
  for (std::size_t i = 0; i < usual.optimizer_state.size(); ++i) {
    const auto& [name, expected] = usual.optimizer_state[i];
    const auto& [same_name, actual] = channels_last.optimizer_state[i];
    EXPECT_EQ(name, same_name);
    EXPECT_TRUE(actual.is_contiguous()) << name;
    EXPECT_TRUE(torch::allclose(expected, actual, 1e-2, 1e-3)) << name;
  }
}

}  // namespace
}  // namespace tutti
