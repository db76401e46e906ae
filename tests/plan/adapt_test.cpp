#include "plan/adapt.h"

#include <gmock/gmock.h>

#include "plan/profiles.h"
#include "tutti/strategy.h"

namespace tutti {
namespace {

Plan plan_of(const char* strategy) { return find_strategy(strategy).make_plan(profile_of({32, 48, 16}), {}, 2, {}); }

TEST(Adapt, LeavesAPlanAloneThatNothingStandsAgainst) {
  for (const char* const strategy : {"bsp", "dear", "zero1"}) {
    Plan plan = plan_of(strategy);
    EXPECT_EQ(adapt(plan, {}), "");
    EXPECT_EQ(plan, plan_of(strategy));
  }
}

TEST(Adapt, LetsTheOptimizerWaitForAllGradientsWhereOneReasonAsksForIt) {
  PlanNeeds clips, new_parameters, whole_tensors;
  clips.clips = new_parameters.has_new_parameters = whole_tensors.whole_tensors = true;
  for (const PlanNeeds& needs : {clips, new_parameters, whole_tensors}) {
    Plan plan = plan_of("zero1");
    const std::vector<Transfer> transfers = plan.transfers;
    EXPECT_THAT(adapt(plan, needs), testing::HasSubstr("every rank keeps the whole optimizer state"));
    EXPECT_EQ(plan.barrier, Barrier::optimizer_step);
    EXPECT_FALSE(plan.sharded_optimizer);
    EXPECT_EQ(plan.transfers, transfers) << "they still overlap backward";
  }
}

TEST(Adapt, HasNothingToSayAboutAPlanThatWaitsAnyway) {
  Plan plan = plan_of("bsp");
  PlanNeeds needs;
  needs.clips = true;
  EXPECT_EQ(adapt(plan, needs), "");
}

TEST(Adapt, TellsThePlanOfNodesUnlessServersAddUp) {
  PlanNeeds needs;
  needs.node_ranks = {2, 1};
  Plan plan = plan_of("wfbp"), with_servers = plan_of("wfbp-ps");
  adapt(plan, needs);
  adapt(with_servers, needs);
  EXPECT_EQ(plan.node_ranks, needs.node_ranks);
  EXPECT_TRUE(with_servers.node_ranks.empty());
}

}  // namespace
}  // namespace tutti
