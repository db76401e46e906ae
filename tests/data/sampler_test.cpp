#include "data/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "tutti/error.h"

namespace tutti {
namespace {

using Indices = std::vector<int64_t>;

Indices epoch_order(const Sampler& sampler, int ranks) {
  Indices order;
  for (int64_t step = 0; step < sampler.steps(); ++step) {
    for (int rank = 0; rank < ranks; ++rank) {
      const Indices part = sampler.indices(step, rank);
      order.insert(order.end(), part.begin(), part.end());
    }
  }
  return order;
}

TEST(Sampler, TakesEverySampleOncePerEpoch) {
  const Sampler sampler(103, 1, 8, 3);
  Indices order = epoch_order(sampler, 3);
  EXPECT_FALSE(std::is_sorted(order.begin(), order.end()));
  std::sort(order.begin(), order.end());
  Indices expected(103);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(order, expected);
}

TEST(Sampler, OrderIsTheSameOnEveryMachine) {
  EXPECT_EQ(epoch_order(Sampler(10, 1, 10, 1), 1), (Indices{5, 2, 1, 0, 7, 9, 4, 6, 3, 8}));
}

TEST(Sampler, OrderFollowsSeedAndEpoch) {
  Sampler sampler(1000, 5, 10, 1);
  const Indices first = epoch_order(sampler, 1);
  sampler.begin_epoch(1);
  const Indices second = epoch_order(sampler, 1);
  EXPECT_NE(first, second);
  EXPECT_NE(first, epoch_order(Sampler(1000, 6, 10, 1), 1));
  sampler.begin_epoch(0);
  EXPECT_EQ(first, epoch_order(sampler, 1));
}

TEST(Sampler, ManyRanksSeeInEachStepWhatOneRankSeesWithTheWholeBatch) {
  const Sampler one(1000, 1, 64, 1);
  const Sampler four(1000, 1, 16, 4);
  ASSERT_EQ(one.steps(), four.steps());
  for (int64_t step = 0; step < one.steps(); ++step) {
    Indices together;
    for (int rank = 0; rank < 4; ++rank) {
      const Indices part = four.indices(step, rank);
      together.insert(together.end(), part.begin(), part.end());
    }
    EXPECT_EQ(together, one.indices(step, 0)) << "step " << step;
  }
}

TEST(Sampler, SharesTheLastStepOutEvenlyLongerPartsFirst) {
  const Sampler sampler(30, 1, 5, 4, /*shuffle=*/false);  // one step of 20, one of 10
  ASSERT_EQ(sampler.steps(), 2);
  EXPECT_EQ(sampler.global_size(0), 20);
  EXPECT_EQ(sampler.global_size(1), 10);
  EXPECT_EQ(sampler.indices(1, 0), (Indices{20, 21, 22}));
  EXPECT_EQ(sampler.indices(1, 1), (Indices{23, 24, 25}));
  EXPECT_EQ(sampler.indices(1, 2), (Indices{26, 27}));
  EXPECT_EQ(sampler.indices(1, 3), (Indices{28, 29}));
}

TEST(Sampler, LeavesRanksWithoutSamplesWhenTooFewAreLeft) {
  const Sampler sampler(2, 1, 5, 3, /*shuffle=*/false);
  EXPECT_EQ(sampler.indices(0, 0), (Indices{0}));
  EXPECT_EQ(sampler.indices(0, 1), (Indices{1}));
  EXPECT_TRUE(sampler.indices(0, 2).empty());
}

TEST(Sampler, ResumesInTheMiddleOfAnEpochEvenWithAnotherNumberOfRanks) {
  Sampler sampler(100, 1, 8, 2);
  sampler.begin_epoch(3);
  Indices rest = epoch_order(sampler, 2);
  rest.erase(rest.begin(), rest.begin() + 48);
  Sampler resumed(100, 1, 5, 3);
  resumed.begin_epoch(3, 48);
  EXPECT_EQ(resumed.steps(), 4);
  EXPECT_EQ(epoch_order(resumed, 3), rest);
}

TEST(Sampler, HasNoStepsAtTheEndOfAnEpoch) {
  Sampler sampler(100, 1, 8, 2);
  sampler.begin_epoch(0, 100);
  EXPECT_EQ(sampler.steps(), 0);
  EXPECT_EQ(sampler.global_size(0), 0);
}

TEST(Sampler, EveryPositionIsEquallyLikely) {
  // Over 4000 epochs, sample 0 of 5 should come at each place about 800 times (deviation 25).
  Indices counts(5);
  Sampler sampler(5, 9, 5, 1);
  for (int64_t epoch = 0; epoch < 4000; ++epoch) {
    sampler.begin_epoch(epoch);
    const Indices order = sampler.indices(0, 0);
    ++counts[static_cast<size_t>(std::find(order.begin(), order.end(), 0) - order.begin())];
  }
  for (const int64_t count : counts) EXPECT_NEAR(count, 800, 125);
}

TEST(Sampler, RefusesWhatCannotWork) {
  EXPECT_THROW(Sampler(10, 1, 0, 1), UsageError);
  EXPECT_THROW(Sampler(10, 1, 1, 0), UsageError);
  Sampler sampler(10, 1, 1, 1);
  EXPECT_THROW(sampler.begin_epoch(0, 11), Error);
}

}  // namespace
}  // namespace tutti
