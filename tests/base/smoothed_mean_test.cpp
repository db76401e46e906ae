#include "base/smoothed_mean.h"

#include <gtest/gtest.h>

namespace tutti {
namespace {

TEST(SmoothedMean, IsTheMeanWhereThereAreFewAndForgetsWhatIsLongAgo) {
  SmoothedMean mean(50);
  EXPECT_FALSE(mean.value());
  mean.add(4);
  EXPECT_DOUBLE_EQ(*mean.value(), 4);  // in full, though it is the first
  mean.add(2);
  EXPECT_NEAR(*mean.value(), 3, 0.02);
  for (int i = 0; i < 1000; ++i) mean.add(1);
  EXPECT_NEAR(*mean.value(), 1, 1e-6);
}

TEST(SmoothedMean, TakesSeveralOfWhichTheMeanIsKnown) {
  SmoothedMean one_by_one(50), together(50);
  for (const double value : {3.0, 5.0}) {
    for (int i = 0; i < 100; ++i) one_by_one.add(value);
    together.add(value, 100);
  }
  EXPECT_NEAR(*together.value(), *one_by_one.value(), 1e-12);
}

}  // namespace
}  // namespace tutti
