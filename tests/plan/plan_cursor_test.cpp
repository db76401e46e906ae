#include "plan/plan_cursor.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "profiles.h"
#include "tutti/strategy.h"

namespace tutti {
namespace {

TEST(PlanCursor, StartsATransferWhenItsLastGradientIsThere) {
  StrategyOptions options;
  options.first_bucket_bytes = options.bucket_bytes = 4 * 20;
  const Plan plan = make_buckets_plan(profile_of({10, 10, 20}), {}, 2, options);
  PlanCursor cursor(plan);
  cursor.gradient_ready(0);
  EXPECT_EQ(cursor.start_next(), std::nullopt);
  cursor.gradient_ready(1);
  EXPECT_EQ(cursor.start_next(), 0u);
  EXPECT_EQ(cursor.start_next(), std::nullopt);
}

TEST(PlanCursor, KeepsPlanOrderWhenGradientsComeInAnother) {
  const Plan plan = make_wfbp_plan(profile_of({1, 1, 1}), {}, 2, {});
  PlanCursor cursor(plan);
  cursor.gradient_ready(2);
  cursor.gradient_ready(1);
  EXPECT_EQ(cursor.start_next(), std::nullopt);
  cursor.gradient_ready(0);
  EXPECT_EQ(cursor.start_next(), 0u);
  EXPECT_EQ(cursor.start_next(), 1u);
  EXPECT_EQ(cursor.start_next(), 2u);
}

TEST(PlanCursor, CountsMissingGradientsAsReadyAfterBackward) {
  const Plan plan = make_wfbp_plan(profile_of({1, 1}), {}, 2, {});
  PlanCursor cursor(plan);
  cursor.gradient_ready(1);
  cursor.backward_done();
  EXPECT_EQ(cursor.start_next(), 0u);
  EXPECT_EQ(cursor.start_next(), 1u);
  EXPECT_FALSE(cursor.has_gradient(0));
  EXPECT_TRUE(cursor.has_gradient(1));
}

TEST(PlanCursor, HoldsBackWhatStartsAfterBackward) {
  const Plan plan = make_bsp_plan(profile_of({1, 1}), {}, 2, {});
  PlanCursor cursor(plan);
  cursor.gradient_ready(0);
  cursor.gradient_ready(1);
  EXPECT_EQ(cursor.start_next(), std::nullopt);
  cursor.backward_done();
  EXPECT_EQ(cursor.start_next(), 0u);
}

TEST(PlanCursor, StartsEveryTransferExactlyOncePerStepWhateverTheOrderOfEvents) {
  std::mt19937 random(3);
  for (int round = 0; round < 100; ++round) {
    const Profile profile = random_profile(random);
    for (const Strategy& strategy : strategies()) {
      const Plan plan = strategy.make_plan(profile, some_links(), 2, {});
      PlanCursor cursor(plan);
      for (int step = 0; step < 2; ++step) {
        cursor.begin_step();
        std::vector<std::size_t> slots(plan.slots.size());
        for (std::size_t i = 0; i < slots.size(); ++i) slots[i] = i;
        std::shuffle(slots.begin(), slots.end(), random);
        std::size_t started = 0;
        const auto start_all = [&] {
          while (const auto transfer = cursor.start_next()) {
            EXPECT_EQ(*transfer, started++);
            cursor.transfer_done(*transfer);
          }
        };
        for (const std::size_t slot : slots) {
          cursor.gradient_ready(slot);
          start_all();
        }
        cursor.backward_done();
        start_all();
        EXPECT_EQ(started, plan.transfers.size());
        EXPECT_TRUE(cursor.is_step_synchronized());
      }
    }
  }
}

}  // namespace
}  // namespace tutti
