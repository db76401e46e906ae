#include "train/course.h"

#include <gtest/gtest.h>

namespace tutti {
namespace {

// 300 samples in steps of 32: nine whole ones and one of 12.
constexpr Course::Sizes kSame{300, 32, 32};

TEST(Course, CountsStepsAsTheyAreWhereTheirSizeStays) {
  const Course epochs(kSame, 3, 0);
  EXPECT_EQ(epochs.steps_left({}), 30);
  EXPECT_EQ(epochs.steps_left({7, 0, 7 * 32}), 23);
  EXPECT_EQ(epochs.first_steps({7, 0, 7 * 32}), 7);
  EXPECT_EQ(epochs.first_steps({10, 0, 300}), 10);
  EXPECT_EQ(epochs.first_steps_in_all(), 30);
  const Course steps(kSame, 3, 14);
  EXPECT_EQ(steps.steps_left({}), 14);
  EXPECT_EQ(steps.steps_left({10, 0, 300}), 4);
  EXPECT_EQ(steps.steps_left_in_epoch({10, 1, 0}), 4);
  EXPECT_EQ(steps.steps_left({14, 1, 4 * 32}), 0);
  EXPECT_EQ(steps.first_steps_in_all(), 14);
}

TEST(Course, CountsTheTestsThatAreLeft) {
  const Course epochs(kSame, 5, 0);
  EXPECT_EQ(epochs.tests_left({}, 1), 5);
  EXPECT_EQ(epochs.tests_left({}, 2), 3);            // after epochs 2 and 4, and at the end
  EXPECT_EQ(epochs.tests_left({20, 1, 300}, 2), 2);  // which is over, but for its test
  EXPECT_EQ(epochs.tests_left({49, 4, 9 * 32}, 2), 1);
  EXPECT_EQ(epochs.tests_left({50, 5, 0}, 2), 0);
  EXPECT_EQ(Course(kSame, 3, 14).tests_left({}, 1), 2);  // in the middle of the second epoch, too
}

TEST(Course, EndsAfterTheSameEpochsWithStepsOfAnotherSize) {
  const Course course({300, 128, 32}, 3, 0);
  // Half an epoch with steps of 32 is done: 140 samples are left of it, then two epochs of three steps.
  EXPECT_EQ(course.steps_left({5, 0, 160}), 2 + 3 + 3);
  EXPECT_EQ(course.first_steps({5, 0, 160}), 5);
  EXPECT_EQ(course.first_steps({6, 0, 288}), 9);
  EXPECT_EQ(course.first_steps({7, 1, 0}), 10);
}

TEST(Course, EndsAfterTheSameSamplesWhereStepsWereCounted) {
  // 14 steps of 32 are an epoch and 128 samples: with steps of 64, five and two.
  EXPECT_EQ(Course({300, 64, 32}, 3, 14).steps_left({}), 7);
  EXPECT_EQ(Course({300, 64, 32}, 3, 14).steps_left({8, 0, 256}), 1 + 2);
  // Of a size that does not divide, the last one goes beyond.
  EXPECT_EQ(Course({300, 100, 32}, 3, 14).steps_left({10, 1, 0}), 2);
}

}  // namespace
}  // namespace tutti
