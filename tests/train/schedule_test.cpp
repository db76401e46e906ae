#include "train/schedule.h"

#include <gtest/gtest.h>

#include "tutti/error.h"

namespace tutti {
namespace {

double factor(const ScheduleOptions& options, double step) { return schedule_factor(options, step, 100, 10); }

TEST(Schedule, ConstantStaysAtTheBaseRate) {
  EXPECT_EQ(factor({}, 0), 1);
  EXPECT_EQ(factor({}, 99), 1);
}

TEST(Schedule, WarmUpRisesLinearlyToTheFullRate) {
  ScheduleOptions options;
  options.warmup_steps = 4;
  EXPECT_DOUBLE_EQ(factor(options, 0), 0.25);
  EXPECT_DOUBLE_EQ(factor(options, 3), 1);
  EXPECT_DOUBLE_EQ(factor(options, 4), 1);
}

TEST(Schedule, StepFallsByGammaEverySoManyEpochs) {
  ScheduleOptions options;
  options.name = "step";
  options.step_epochs = 2;
  options.gamma = 0.5;
  EXPECT_DOUBLE_EQ(factor(options, 19), 1);
  EXPECT_DOUBLE_EQ(factor(options, 20), 0.5);
  EXPECT_DOUBLE_EQ(factor(options, 40), 0.25);
}

TEST(Schedule, CosineFallsFromTheFullRateToNothing) {
  ScheduleOptions options;
  options.name = "cosine";
  EXPECT_DOUBLE_EQ(factor(options, 0), 1);
  EXPECT_NEAR(factor(options, 50), 0.5, 1e-12);
  EXPECT_NEAR(factor(options, 100), 0, 1e-12);
}

TEST(Schedule, WithAnUnknownNameIsRefused) {
  ScheduleOptions options;
  options.name = "cosin";
  EXPECT_THROW(factor(options, 0), UsageError);
}

}  // namespace
}  // namespace tutti
