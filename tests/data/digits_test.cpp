#include <gtest/gtest.h>

#include <thread>

#include "data/dataset.h"

namespace tutti {
namespace {

TrainTest digits(uint64_t seed, int64_t train, int64_t test) {
  DataOptions options;
  options.seed = seed;
  options.train_size = train;
  options.test_size = test;
  return open_data(options);
}

Batch load_all(const Dataset& data, int64_t count) {
  Batch batch = data.make_batch(count, false);
  for (int64_t i = 0; i < count; ++i) data.load(i, i, batch);
  return batch;
}

/// The same on every machine: whole grey levels, weighted by place.
int64_t checksum(const Batch& batch) {
  const torch::Tensor bytes = (batch.inputs[0].to(torch::kDouble) * 0.3081 + 0.1307).mul(255).round().to(torch::kLong);
  const torch::Tensor flat = bytes.reshape({-1});
  return (flat * (torch::arange(flat.numel()) % 8191 + 1)).sum().item<int64_t>();
}

TEST(Digits, HaveTheirOwnDefaultSizes) {
  const TrainTest data = open_data({});
  EXPECT_EQ(data.train->name(), "digits");
  EXPECT_EQ(data.train->size(), 20000);
  EXPECT_EQ(data.test->size(), 4000);
}

TEST(Digits, AreTheSameOnEveryMachine) { EXPECT_EQ(checksum(load_all(*digits(1, 100, 100).train, 100)), 9824061562); }

TEST(Digits, DependOnSeedAndSplitButNotOnTheSize) {
  const Batch batch = load_all(*digits(1, 50, 50).train, 50);
  EXPECT_TRUE(load_all(*digits(1, 5000, 50).train, 50).inputs[0].equal(batch.inputs[0]));
  EXPECT_FALSE(load_all(*digits(2, 50, 50).train, 50).inputs[0].equal(batch.inputs[0]));
  EXPECT_FALSE(load_all(*digits(1, 50, 50).test, 50).inputs[0].equal(batch.inputs[0]));
}

TEST(Digits, TestImagesAreNotAmongTheTrainingImages) {
  const TrainTest data = digits(1, 2000, 200);
  const torch::Tensor train = load_all(*data.train, 2000).inputs[0].flatten(1);
  const torch::Tensor test = load_all(*data.test, 200).inputs[0].flatten(1);
  EXPECT_GT(torch::cdist(test, train).min().item<float>(), 1);
}

TEST(Digits, EachClassIsEquallyFrequent) {
  const Batch batch = load_all(*digits(1, 1000, 1).train, 1000);
  for (int64_t digit = 0; digit < 10; ++digit) EXPECT_EQ(batch.target.eq(digit).sum().item<int64_t>(), 100);
}

TEST(Digits, HaveInkInTheMiddleAndNoneAtTheBorder) {
  const Batch batch = load_all(*digits(1, 500, 1).train, 500);
  const torch::Tensor brightest = batch.inputs[0].flatten(1).amax(1);
  EXPECT_GT(brightest.min().item<float>(), 1);
  const torch::Tensor ink = batch.inputs[0].gt(1).to(torch::kFloat).mean(0)[0];
  EXPECT_GT(ink.slice(0, 8, 20).slice(1, 8, 20).mean().item<float>(), .2);
  EXPECT_LT(ink[0].mean().item<float>(), .01);
  EXPECT_LT(ink.select(1, 27).mean().item<float>(), .01);
}

TEST(Digits, StayTheSameWhenLoadedAgainAndFromManyThreads) {
  const auto data = digits(3, 300, 1).train;
  std::vector<Batch> batches(4);
  std::vector<std::thread> threads;
  for (Batch& batch : batches) threads.emplace_back([&] { batch = load_all(*data, 300); });
  for (std::thread& thread : threads) thread.join();
  const Batch again = load_all(*data, 300);
  for (const Batch& batch : batches) EXPECT_TRUE(batch.inputs[0].equal(again.inputs[0]));
}

}  // namespace
}  // namespace tutti
