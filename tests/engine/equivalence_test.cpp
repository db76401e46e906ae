// Every strategy ends a run with the weights of `bsp`, bit for bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <type_traits>
#include <vector>

#include "engine/engine.h"
#include "networks.h"
#include "support/rank_threads.h"
#include "support/test_servers.h"

namespace tutti {
namespace {

struct Setting {
  int ranks = 2;
  int steps = 20;
  std::string optimizer = "sgd";
  double clip_norm = 0;
  int accumulate = 1;
  std::string wire = "fp32";
  int servers = 0;  // for strategies that use them; 0: one beside each rank
};

template <typename Network>
std::vector<torch::Tensor> weights_after(const std::string& strategy, const Setting& setting) {
  std::vector<std::shared_ptr<Network>> models;
  for (int rank = 0; rank < setting.ranks; ++rank) {
    torch::manual_seed(9);
    models.push_back(std::make_shared<Network>());
  }
  std::vector<std::vector<torch::Tensor>> weights(static_cast<std::size_t>(setting.ranks));
  const TestServers servers(strategy, setting.ranks, setting.servers);
  const auto errors = run_rank_threads(setting.ranks, [&](Communicator& comm) {
    Network& model = *models[static_cast<std::size_t>(comm.rank())];
    EngineOptions options;
    options.strategy = strategy;
    options.optimizer.name = setting.optimizer;
    options.optimizer.momentum = 0.9;
    options.clip_norm = setting.clip_norm;
    options.wire = setting.wire;
    options.strategy_options.bucket_bytes = 300;
    options.strategy_options.first_bucket_bytes = 100;
    // A few partitions of the longest tensor.
    int64_t longest = 0;
    for (const torch::Tensor& parameter : model.parameters()) longest = std::max(longest, parameter.numel());
    options.strategy_options.partition_bytes = std::max<int64_t>(128, longest);
    options.strategy_options.credit_bytes = 2 * options.strategy_options.partition_bytes;
    const auto connection = servers.connect(comm.rank());
    if (connection) options.servers = &connection->push_pull();
    Engine engine(model, comm, options);
    for (int step = 0; step < setting.steps; ++step) {
      engine.begin_step();
      for (int micro = 0; micro < setting.accumulate; ++micro) {
        const int64_t first = ((step * comm.size() + comm.rank()) * setting.accumulate + micro) * 4;
        engine.backward(model.loss(make_samples(first, 4)), 1.0 / (comm.size() * setting.accumulate),
                        micro + 1 == setting.accumulate);
      }
      engine.finish_step(0.05);
    }
    engine.settle();
    weights[static_cast<std::size_t>(comm.rank())] = copies(model);
    if (connection) connection->stop();
  });
  for (const std::string& error : errors) EXPECT_EQ(error, "");
  for (std::size_t rank = 1; rank < weights.size(); ++rank)
    for (std::size_t i = 0; i < weights[0].size(); ++i)
      EXPECT_TRUE(torch::equal(weights[rank][i], weights[0][i]))
          << strategy << ": rank " << rank << " differs from rank 0";
  return weights[0];
}

template <typename Network>
void expect_all_strategies_equal(const Setting& setting) {
  const auto expected = weights_after<Network>("bsp", setting);
  for (const std::string& strategy : strategy_names()) {
    const auto weights = weights_after<Network>(strategy, setting);
    ASSERT_EQ(weights.size(), expected.size());
    for (std::size_t i = 0; i < weights.size(); ++i)
      EXPECT_TRUE(torch::equal(weights[i], expected[i])) << strategy << " differs from bsp in parameter " << i << " ("
                                                         << setting.ranks << " ranks, " << setting.optimizer << ")";
  }
}

// Sanitizers make everything many times slower, and look at accesses, not at numbers: a little of each is enough for
// them.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
const std::vector<int> kRanks = {3};
template <typename Network>
constexpr int kSteps = std::is_same_v<Network, ManyTinyNetwork> ? 4 : 5;
#else
const std::vector<int> kRanks = {2, 3, 4};
/// Three hundred tensors make three hundred messages a step: fewer steps do.
template <typename Network>
constexpr int kSteps = std::is_same_v<Network, ManyTinyNetwork> ? 8 : 20;
#endif

template <typename Network>
class Equivalence : public testing::Test {};
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
// mnist-cnn's own kernels take minutes there; the engine does the same for the others.
using Networks = testing::Types<BatchNormNetwork, TiedNetwork, UnusedNetwork, ManyTinyNetwork>;
#else
using Networks = testing::Types<DigitNetwork, BatchNormNetwork, TiedNetwork, UnusedNetwork, ManyTinyNetwork>;
#endif
TYPED_TEST_SUITE(Equivalence, Networks);

TYPED_TEST(Equivalence, OfAllStrategies) {
  for (const int ranks : kRanks)
    for (const char* optimizer : {"sgd", "adam"})
      expect_all_strategies_equal<TypeParam>({ranks, kSteps<TypeParam>, optimizer});
}

/// Variations need fewer steps: three are the profile's, the others follow the strategy's plan.
template <typename Network>
constexpr int kFewSteps = std::min(8, kSteps<Network>);

TYPED_TEST(Equivalence, OfAllStrategiesWithAccumulationAndClipping) {
  expect_all_strategies_equal<TypeParam>({2, kFewSteps<TypeParam>, "adam", 0, 3});
  expect_all_strategies_equal<TypeParam>({3, kFewSteps<TypeParam>, "sgd", 0.05, 1});
  expect_all_strategies_equal<TypeParam>({2, kFewSteps<TypeParam>, "adam", 0.05, 2});
}

TYPED_TEST(Equivalence, OfAllStrategiesWith16BitMessages) {
  expect_all_strategies_equal<TypeParam>({3, kFewSteps<TypeParam>, "sgd", 0, 1, "bf16"});
  expect_all_strategies_equal<TypeParam>({2, kFewSteps<TypeParam>, "adam", 0, 1, "fp16"});
}

TEST(ParameterServers, OfAnyNumberGiveTheWeightsOfBsp) {
  const auto expected = weights_after<BatchNormNetwork>("bsp", {3, 6});
  for (const char* strategy : {"bsp-ps", "wfbp-ps", "bytescheduler-ps"})
    for (const int servers : {1, 2, 5}) {
      const auto weights = weights_after<BatchNormNetwork>(strategy, {3, 6, "sgd", 0, 1, "fp32", servers});
      for (std::size_t i = 0; i < weights.size(); ++i)
        EXPECT_TRUE(torch::equal(weights[i], expected[i])) << strategy << " with " << servers << " servers";
    }
}

TEST(HugeTensor, IsSynchronizedEquallyByAllStrategies) {
  expect_all_strategies_equal<HugeTensorNetwork>({2, 5, "sgd"});
}

/// $TUTTI_REPEATS: how often each strategy runs.
TEST(EveryStrategy, EndsEachOfManyShortRuns) {
  const char* const repeats = std::getenv("TUTTI_REPEATS");
  const int count = repeats != nullptr ? std::atoi(repeats) : 10;
  for (const std::string& strategy : strategy_names()) {
    const auto expected = weights_after<BatchNormNetwork>(strategy, {2, 6, "sgd"});
    for (int run = 1; run < count; ++run)
      ASSERT_TRUE(torch::equal(weights_after<BatchNormNetwork>(strategy, {2, 6, "sgd"})[0], expected[0]))
          << strategy << ", run " << run;
  }
}

TEST(Zero1, KeepsOnlyAShareOfTheOptimizersStateOnEachRank) {
  std::vector<int64_t> bytes(4);
  const auto errors = run_rank_threads(4, [&](Communicator& comm) {
    torch::nn::Linear model(256, 64);
    EngineOptions options;
    options.strategy = "zero1";
    options.optimizer.name = "adam";
    Engine engine(*model, comm, options);
    const int64_t whole = engine.optimizer_state_bytes();
    for (int step = 0; step < 5; ++step) {
      engine.begin_step();
      engine.backward(model(torch::ones({2, 256})).sum(), 0.25);
      engine.finish_step(0.1);
    }
    engine.settle();
    bytes[static_cast<std::size_t>(comm.rank())] = engine.optimizer_state_bytes();
    if (engine.optimizer_state_bytes() * 3 > whole)
      throw Error("{} of {} bytes are kept", engine.optimizer_state_bytes(), whole);
    // And a checkpoint has all of it.
    for (const auto& [name, tensor] : engine.optimizer_state())
      if (tensor.abs().min().item<float>() == 0) throw Error("{} has gaps", name);
  });
  for (const std::string& error : errors) EXPECT_EQ(error, "");
  EXPECT_EQ(bytes[0] + bytes[1] + bytes[2] + bytes[3], 2 * 4 * (256 * 64 + 64));
}

}  // namespace
}  // namespace tutti
