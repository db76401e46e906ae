#include "plan/strategy.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "profiles.h"

namespace tutti {
namespace {

std::vector<std::string> transfer_names(const Plan& plan) {
  std::vector<std::string> names;
  for (const Transfer& transfer : plan.transfers) names.push_back(transfer.name);
  return names;
}

using Names = std::vector<std::string>;

TEST(Strategies, CoverEveryGradientExactlyOnceForAnyProfile) {
  std::mt19937 random(42);
  for (int i = 0; i < 200; ++i) {
    const Profile profile = random_profile(random);
    for (const Strategy& strategy : strategies()) check_plan(strategy.make_plan(profile, 2, {}));
  }
}

TEST(Strategies, MakeEmptyPlansForModelsWithoutParameters) {
  for (const Strategy& strategy : strategies()) EXPECT_TRUE(strategy.make_plan({}, 2, {}).transfers.empty());
}

TEST(Strategies, WithAMisspeltNameSuggestTheNearest) {
  try {
    find_strategy("wfpb");
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean 'wfbp'?"), std::string::npos) << error.what();
  }
}

TEST(Bsp, SendsEverythingAtOnceAfterBackward) {
  const Plan plan = make_bsp_plan(profile_of({10, 20, 30}), 2, {});
  ASSERT_EQ(plan.transfers.size(), 1u);
  EXPECT_EQ(plan.transfers[0].starts, StartsWhen::backward_done);
  EXPECT_EQ(plan.transfers[0].elements(), plan.elements);
}

TEST(Wfbp, SendsEachTensorWhenItsGradientIsReady) {
  EXPECT_EQ(transfer_names(make_wfbp_plan(profile_of({10, 20, 30}), 2, {})), (Names{"p2", "p1", "p0"}));
}

TEST(Buckets, CloseOnceTheLimitIsReachedInBackwardOrder) {
  StrategyOptions options;
  options.first_bucket_bytes = 4 * 10;
  options.bucket_bytes = 4 * 50;
  const Plan plan = make_buckets_plan(profile_of({4, 6, 20, 29, 1, 60, 5}), 2, options);
  EXPECT_EQ(transfer_names(plan), (Names{"p6 … p5", "p4 … p2", "p1", "p0"}));
}

}  // namespace
}  // namespace tutti
