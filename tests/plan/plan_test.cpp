#include "tutti/plan.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "profiles.h"
#include "tutti/error.h"
#include "tutti/strategy.h"

namespace tutti {
namespace {

TEST(Plan, LaysGradientsOutInTheProfilesOrderOnCacheLines) {
  const Plan plan = empty_plan(profile_of({5, 16, 17}), "x", 2);
  ASSERT_EQ(plan.slots.size(), 3u);
  EXPECT_EQ(plan.slots[0].begin, 0);
  EXPECT_EQ(plan.slots[1].begin, 16);
  EXPECT_EQ(plan.slots[2].begin, 32);
  EXPECT_EQ(plan.elements, 64);
}

TEST(Plan, KnowsTheSlotsThatATransferCarriesSomethingOf) {
  const Plan plan = empty_plan(profile_of({5, 16, 17}), "x", 2);  // [0, 5), [16, 32), [32, 49), then padding to 64
  const auto slots = [&](int64_t begin, int64_t end) {
    Transfer transfer;
    transfer.begin = begin;
    transfer.end = end;
    const SlotRange range = slots_of(plan, transfer);
    return std::pair(range.first, range.end);
  };
  EXPECT_EQ(slots(0, 64), std::pair(0ul, 3ul));
  EXPECT_EQ(slots(0, 16), std::pair(0ul, 1ul));
  EXPECT_EQ(slots(16, 33), std::pair(1ul, 3ul));
  EXPECT_EQ(slots(31, 32), std::pair(1ul, 2ul));
  EXPECT_EQ(slots(4, 17), std::pair(0ul, 2ul));
  EXPECT_EQ(slots(5, 16), std::pair(1ul, 1ul));  // padding alone
  EXPECT_EQ(slots(49, 64), std::pair(3ul, 3ul));
}

TEST(Plan, SurvivesTheWayThroughJson) {
  std::mt19937 random(7);
  for (const Strategy& strategy : strategies()) {
    const Plan plan = strategy.make_plan(random_profile(random), some_links(), 3, {});
    const auto text = nlohmann::json(plan).dump();
    EXPECT_EQ(nlohmann::json::parse(text).get<Plan>(), plan) << strategy.name;
  }
}

TEST(Plan, WithAGapOrAnOverlapIsRefused) {
  Plan plan = make_wfbp_plan(profile_of({100, 200}), {}, 2, {});
  check_plan(plan);
  Plan gap = plan;
  gap.transfers.pop_back();
  EXPECT_THROW(check_plan(gap), Error);
  Plan overlap = plan;
  overlap.transfers[1].begin -= 16;
  EXPECT_THROW(check_plan(overlap), Error);
}

TEST(Plan, WithHalvesThatDoNotFitIsRefused) {
  const Plan plan = make_dear_plan(profile_of({100, 200}), {}, 2, {});
  check_plan(plan);
  Plan alone = plan;
  alone.transfers.pop_back();
  EXPECT_THROW(check_plan(alone), Error);
  Plan backwards = plan;
  std::swap(backwards.transfers[0], backwards.transfers.back());
  EXPECT_THROW(check_plan(backwards), Error);
}

TEST(Plan, SharesEveryElementOfATransferOut) {
  Transfer transfer;
  transfer.begin = 16;
  for (int64_t elements : {16, 48, 1600, 16 * 997}) {
    transfer.end = transfer.begin + elements;
    for (int ranks = 1; ranks <= 7; ++ranks) {
      std::size_t sum = 0;
      for (const std::size_t count : shares(transfer, ranks)) sum += count;
      EXPECT_EQ(sum, static_cast<std::size_t>(elements)) << ranks;
    }
  }
}

TEST(Profile, SurvivesTheWayThroughJson) {
  const Profile profile = profile_of({3, 4});
  const auto again = nlohmann::json::parse(nlohmann::json(profile).dump()).get<Profile>();
  ASSERT_EQ(again.gradients.size(), 2u);
  EXPECT_EQ(again.gradients[1].name, "p0");
  EXPECT_EQ(again.gradients[1].elements, 4);
  EXPECT_DOUBLE_EQ(again.backward_s, profile.backward_s);
}

}  // namespace
}  // namespace tutti
