// Every strategy ends a run with the weights of `bsp`, bit for bit.
#include "engine/equivalence.h"

#include <cstdlib>
#include <type_traits>

namespace tutti {
namespace {

/// $TUTTI_LONG: all networks with all ranks, steps and optimizers, which takes minutes.
bool long_runs() { return std::getenv("TUTTI_LONG") != nullptr; }

// Sanitizers make everything many times slower, and look at accesses, not at numbers: a little of each is enough for
// them.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
const std::vector<int> kRanks = {3};
template <typename Network>
int all_steps() {
  return std::is_same_v<Network, ManyTinyNetwork> ? 4 : 5;
}
#else
const std::vector<int> kRanks = {2, 3, 4};
/// Three hundred tensors make three hundred messages a step: fewer steps do. Three are the profile's, the others follow
/// the strategy's plan.
template <typename Network>
int all_steps() {
  return std::is_same_v<Network, ManyTinyNetwork> && !long_runs() ? 6 : 20;
}
#endif

template <typename Network>
class Equivalence : public testing::Test {};
using Networks = testing::Types<BatchNormNetwork, TiedNetwork, UnusedNetwork, ManyTinyNetwork>;
TYPED_TEST_SUITE(Equivalence, Networks);

TYPED_TEST(Equivalence, OfAllStrategies) {
  for (const int ranks : kRanks)
    for (const char* optimizer : {"sgd", "adam"})
      expect_all_strategies_equal<TypeParam>({ranks, all_steps<TypeParam>(), optimizer});
}

TYPED_TEST(Equivalence, OfAllStrategiesWithAnOptimizerThatNeedsWholeTensors) {
  expect_all_strategies_equal<TypeParam>({3, std::min(8, all_steps<TypeParam>()), "lamb"});
  expect_all_strategies_equal<TypeParam>({2, std::min(8, all_steps<TypeParam>()), "lamb", 0.05, 2});
}

/// Variations need fewer steps: three are the profile's, the others follow the strategy's plan.
template <typename Network>
int few_steps() {
  return std::min(8, all_steps<Network>());
}

TYPED_TEST(Equivalence, OfAllStrategiesWithAccumulationAndClipping) {
  expect_all_strategies_equal<TypeParam>({2, few_steps<TypeParam>(), "adam", 0, 3});
  expect_all_strategies_equal<TypeParam>({3, few_steps<TypeParam>(), "sgd", 0.05, 1});
  expect_all_strategies_equal<TypeParam>({2, few_steps<TypeParam>(), "adam", 0.05, 2});
}

TYPED_TEST(Equivalence, OfAllStrategiesWith16BitMessages) {
  expect_all_strategies_equal<TypeParam>({3, few_steps<TypeParam>(), "sgd", 0, 1, "bf16"});
  expect_all_strategies_equal<TypeParam>({2, few_steps<TypeParam>(), "adam", 0, 1, "fp16"});
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
  if (!long_runs()) return expect_all_strategies_equal<HugeTensorNetwork>({2, 5, "sgd"});
  for (const int ranks : {2, 3, 4})
    for (const char* optimizer : {"sgd", "adam"})
      expect_all_strategies_equal<HugeTensorNetwork>({ranks, 20, optimizer});
}

TEST(HiddenRead, OfAParameterThatNoOperatorTakesFindsItUpToDate) {
  expect_all_strategies_equal<HiddenReadNetwork>({2, 10, "sgd"});
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
    TuneOptions options;
    options.strategy = "zero1";
    options.optimizer.name = "adam";
    TunedEngine engine(*model, comm, options);
    const int64_t whole = engine.engine().optimizer_state_bytes();
    for (int step = 0; step < 5; ++step) {
      engine.begin_step();
      engine.backward(model(torch::ones({2, 256})).sum(), 0.25);
      engine.finish_step(0.1);
    }
    engine.settle();
    bytes[static_cast<std::size_t>(comm.rank())] = engine.engine().optimizer_state_bytes();
    if (engine.engine().optimizer_state_bytes() * 3 > whole)
      throw Error("{} of {} bytes are kept", engine.engine().optimizer_state_bytes(), whole);
    // And a checkpoint has all of it.
    for (const auto& [name, tensor] : engine.engine().optimizer_state())
      if (tensor.abs().min().item<float>() == 0) throw Error("{} has gaps", name);
  });
  for (const std::string& error : errors) EXPECT_EQ(error, "");
  EXPECT_EQ(bytes[0] + bytes[1] + bytes[2] + bytes[3], 2 * 4 * (256 * 64 + 64));
}

}  // namespace
}  // namespace tutti
