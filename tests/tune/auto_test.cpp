// Strategy `auto`: plans change while training goes on, and the weights do not know.
#include <chrono>
#include <set>
#include <thread>

#include "engine/equivalence.h"
#include "tune/strategy_search.h"

namespace tutti {
namespace {

class Auto : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Optimizers, Auto, testing::Values("sgd", "adam"));

TEST_P(Auto, EndsWithTheWeightsOfBspAfterTryingEverything) {
  for (const int ranks : {2, 3}) {
    const Setting setting{ranks, 150, GetParam()};
    const auto expected = weights_after<BatchNormNetwork>("bsp", setting);
    const auto weights = weights_after<BatchNormNetwork>(kAutoStrategy, setting);
    for (std::size_t i = 0; i < weights.size(); ++i) EXPECT_TRUE(torch::equal(weights[i], expected[i])) << i;
  }
}

TEST_P(Auto, EndsWithTheWeightsOfBspWithAnUnusedParameterClippingAndAccumulation) {
  const Setting setting{2, 100, GetParam(), 0.05, 2};
  const auto expected = weights_after<UnusedNetwork>("bsp", setting);
  const auto weights = weights_after<UnusedNetwork>(kAutoStrategy, setting);
  for (std::size_t i = 0; i < weights.size(); ++i) EXPECT_TRUE(torch::equal(weights[i], expected[i])) << i;
}

/// Steps of a small network on two ranks, until `is_enough`; what each rank saw.
template <typename EachStep>
void train_on_two(const TuneOptions& options, EachStep each_step) {
  std::vector<std::shared_ptr<BatchNormNetwork>> models;
  for (int rank = 0; rank < 2; ++rank) {
    torch::manual_seed(9);
    models.push_back(std::make_shared<BatchNormNetwork>());
  }
  const auto errors = run_rank_threads(2, [&](Communicator& comm) {
    BatchNormNetwork& model = *models[static_cast<std::size_t>(comm.rank())];
    TunedEngine engine(model, comm, options);
    for (int step = 0; each_step(engine, comm.rank(), step); ++step) {
      engine.begin_step();
      engine.backward(model.loss(make_samples(step * 8 + comm.rank() * 4, 4)), 0.5);
      engine.finish_step(0.01);
    }
    engine.settle();
  });
  for (const std::string& error : errors) EXPECT_EQ(error, "");
}

TuneOptions auto_options() {
  TuneOptions options;
  options.strategy = kAutoStrategy;
  options.auto_options = {100, 0, 0, 300};
  return options;
}

TEST(Auto, TriesDifferentStrategiesAndDecidesOnce) {
  std::set<std::string> seen;
  train_on_two(auto_options(), [&](const TunedEngine& engine, int rank, int step) {
    if (rank == 0) seen.insert(engine.plan().strategy);
    if (engine.decisions() > 0) {
      EXPECT_EQ(engine.decisions(), 1);
      EXPECT_TRUE(engine.search()->is_over());
      EXPECT_EQ(engine.plan().strategy, engine.search()->current().plan.strategy);
      EXPECT_GT(engine.search()->current().predicted_s, 0);
      EXPECT_TRUE(engine.links()->reduce_scatter.is_measured());
      return false;
    }
    EXPECT_LT(step, 1000);
    return step < 1000;
  });
  for (const char* strategy : {"bsp", "wfbp", "dear", "zero1", "bytescheduler"})
    EXPECT_EQ(seen.count(strategy), 1U) << strategy;
}

TEST(Auto, LooksAgainWhenStepsHaveBecomeSlower) {
  train_on_two(auto_options(), [&](const TunedEngine& engine, int, int step) {
    if (engine.decisions() == 1 && engine.search() != nullptr)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_LT(step, 2000);
    return engine.decisions() < 2 && step < 2000;
  });
}

TEST(Auto, HasNothingToTryWithOneRank) {
  torch::manual_seed(9);
  BatchNormNetwork model;
  const auto errors = run_rank_threads(1, [&](Communicator& comm) {
    TunedEngine engine(model, comm, auto_options());
    for (int step = 0; step < 8; ++step) {
      engine.begin_step();
      engine.backward(model.loss(make_samples(step * 4, 4)), 1);
      engine.finish_step(0.01);
    }
    EXPECT_EQ(engine.decisions(), 1);
    EXPECT_EQ(engine.search(), nullptr);
  });
  EXPECT_EQ(errors[0], "");
}

}  // namespace
}  // namespace tutti
