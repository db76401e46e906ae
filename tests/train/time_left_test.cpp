#include "train/time_left.h"

#include <gtest/gtest.h>

namespace tutti {
namespace {

TEST(TimeLeft, IsThatOfTheStepsAndTestsOfTheWholeRun) {
  TimeLeft time;
  EXPECT_FALSE(time.seconds(100, 2));
  time.steps_took(1, 10);
  EXPECT_DOUBLE_EQ(*time.seconds(100, 2), 10);  // nobody knows how long a test takes
  time.test_took(4);
  EXPECT_DOUBLE_EQ(*time.seconds(100, 2), 18);
  EXPECT_DOUBLE_EQ(*time.seconds(0, 0), 0);
}

TEST(TimeLeft, IsNotMisledByTheFirstSteps) {
  TimeLeft time;
  time.steps_took(30, 1);  // kernels are being built
  EXPECT_DOUBLE_EQ(*time.seconds(10, 0), 300);
  for (int i = 0; i < 4; ++i) time.steps_took(0.1, 1);
  time.steps_took(0.1, 1);
  EXPECT_NEAR(*time.seconds(10, 0), 1, 1e-9);
}

TEST(TimeLeft, FollowsTheRateWhereItChangesForGood) {
  TimeLeft time;
  for (int i = 0; i < 1000; ++i) time.steps_took(0.1, 1);
  for (int i = 0; i < 10; ++i) time.steps_took(30, 100);  // as a GPU's are counted
  EXPECT_NEAR(*time.seconds(100, 0), 30, 1);
}

}  // namespace
}  // namespace tutti
