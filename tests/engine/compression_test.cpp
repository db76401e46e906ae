#include "engine/compression.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <numeric>

#include "networks.h"
#include "support/rank_threads.h"
#include "tutti/tuned_engine.h"

namespace tutti {
namespace {

using Numbers = std::vector<float>;

Numbers decoded(const Compressor& compressor, const Numbers& gradients) {
  Numbers message(compressor.words(gradients.size())), result(gradients.size(), 0);
  compressor.encode(gradients.data(), gradients.size(), message.data());
  compressor.add_decoded(message.data(), gradients.size(), 1, result.data());
  return result;
}

TEST(TopK, KeepsTheLargestMagnitudesAndTheFirstOfEquals) {
  const auto topk = make_compressor("topk", 0.5);
  EXPECT_EQ(decoded(*topk, {1, -5, 2, 3, 0, -4}), (Numbers{0, -5, 0, 3, 0, -4}));
  EXPECT_EQ(decoded(*topk, {2, 2, 2, 2}), (Numbers{2, 2, 0, 0}));
  EXPECT_EQ(decoded(*topk, {7}), (Numbers{7}));
  EXPECT_EQ(make_compressor("topk", 0.01)->words(1000), 20u);
}

TEST(Sign, KeepsSignsAndTheMeanMagnitude) {
  const auto sign = make_compressor("sign", 0);
  EXPECT_EQ(decoded(*sign, {1, -5, 3, -3}), (Numbers{3, -3, 3, -3}));
  EXPECT_EQ(sign->words(64), 3u);
  Numbers many(45);
  for (std::size_t i = 0; i < many.size(); ++i) many[i] = i % 3 == 0 ? -2.0F : 2.0F;
  EXPECT_EQ(decoded(*sign, many), many);
}

/// The mean loss over the last tenth of a run of 300 steps.
double final_loss(const std::string& wire, const std::string& strategy, double ratio) {
  double loss_sum = 0;
  // Made before the ranks run: they share torch's random numbers.
  torch::manual_seed(9);
  std::array<BatchNormNetwork, 2> models;
  const auto errors = run_rank_threads(2, [&](Communicator& comm) {
    BatchNormNetwork& model = models[static_cast<std::size_t>(comm.rank())];
    TuneOptions options;
    options.strategy = strategy;
    options.wire = wire;
    options.topk_ratio = ratio;
    options.strategy_options.bucket_bytes = 200;
    options.optimizer.momentum = 0;
    TunedEngine engine(model, comm, options);
    for (int step = 0; step < 300; ++step) {
      engine.begin_step();
      const torch::Tensor loss = model.loss(make_samples((step * 2 + comm.rank()) % 16 * 8, 8));
      engine.backward(loss, 0.5);
      engine.finish_step(0.05);
      if (comm.rank() == 0 && step >= 270) loss_sum += loss.item<double>();
    }
    engine.settle();
    const auto weights = copies(model);
    if (!torch::isfinite(weights[0]).all().item<bool>()) throw Error("diverged");
  });
  for (const std::string& error : errors) EXPECT_EQ(error, "");
  return loss_sum / 30;
}

TEST(Compression, ConvergesAsTheWholeGradientsDo) {
  const double whole = final_loss("fp32", "bsp", 1);
  for (const char* strategy : {"bsp", "wfbp", "buckets", "mgwfbp", "bytescheduler"}) {
    EXPECT_LT(final_loss("topk", strategy, 0.1), 1.15 * whole) << strategy;
    EXPECT_LT(final_loss("sign", strategy, 1), 1.15 * whole) << strategy;
  }
}

TEST(Compression, OfEverythingChangesNothing) {
  EXPECT_DOUBLE_EQ(final_loss("topk", "buckets", 1), final_loss("fp32", "buckets", 1));
}

}  // namespace
}  // namespace tutti
