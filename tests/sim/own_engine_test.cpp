#include "sim/own_engine.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "plan/profiles.h"

namespace tutti {
namespace {

LinkCost cost(double startup_s, double per_byte_s) {
  std::vector<LinkSample> samples;
  for (int64_t bytes = 1 << 10; bytes <= 64 << 20; bytes *= 4)
    samples.push_back({bytes, startup_s + per_byte_s * static_cast<double>(bytes)});
  return fit_link_cost(samples);
}

Links own_links() {
  Links links;
  links.all_reduce = cost(100e-6, 1e-9);
  links.reduce_scatter = cost(60e-6, 0.5e-9);
  links.all_gather = cost(40e-6, 0.6e-9);
  return links;
}

CandidateRules all_but_servers() {
  CandidateRules rules;
  rules.allows = [](const Strategy& strategy) { return !strategy.uses_servers; };
  return rules;
}

Profile measured_profile() {
  Profile profile = profile_of({1'000'000, 2'000'000, 500'000, 100});
  profile.update_s = 3e-3;
  profile.rest_s = 2e-3;
  return profile;
}

TEST(OwnEngine, AddsUpWhatABspStepIsMadeOf) {
  const Profile profile = measured_profile();
  const Links links = own_links();
  const Plan plan = make_bsp_plan(profile, links, 2, {});
  const double expected_s = profile.rest_s + profile.forward_s + profile.backward_s + profile.update_s +
                            links.all_reduce.interpolated(plan.elements * 4);
  const SimulatedStep step = simulate_run(plan, profile, cluster_of_run(links, 2));
  EXPECT_NEAR(step.step_s, expected_s, 1e-9);
  EXPECT_NEAR(step.busy_s, links.all_reduce.interpolated(plan.elements * 4), 1e-9);
}

TEST(OwnEngine, TakesEachOperationsOwnCost) {
  const Profile profile = measured_profile();
  Links links = own_links();
  StrategyOptions options;
  options.bucket_bytes = 100 << 20;  // one bucket
  const Plan plan = make_dear_plan(profile, links, 2, options);
  const double before_s = simulate_run(plan, profile, cluster_of_run(links, 2)).step_s;
  links.all_gather = cost(5040e-6, 0.6e-9);
  EXPECT_NEAR(simulate_run(plan, profile, cluster_of_run(links, 2)).step_s, before_s + 5e-3, 1e-6);
}

TEST(OwnEngine, UpdatesWhileItWaitsOrHasNothingToCarry) {
  Profile profile = measured_profile();
  profile.update_s = 0;
  StrategyOptions options;
  options.partition_bytes = 1 << 20;
  const auto step_s = [&](double update_s, double per_byte_s) {
    Links links = own_links();
    links.all_reduce = cost(100e-6, per_byte_s);
    const Plan plan = make_bytescheduler_plan(profile, links, 2, options);
    Profile updating = profile;
    updating.update_s = update_s;
    return simulate_run(plan, updating, cluster_of_run(links, 2)).step_s;
  };
  const double update_s = 3e-3;
  // Messages that take longest: all but the last pieces are updated while forward waits for what is still under way.
  EXPECT_LT(step_s(update_s, 2e-9), step_s(0, 2e-9) + 0.5 * update_s);
  // Messages that take no time: nothing waits, and whoever updates, nobody computes for longer than that.
  EXPECT_LE(step_s(update_s, 1e-13), step_s(0, 1e-13) + update_s * (1 + 1e-9));
}

TEST(OwnEngine, SaysWhatBoundsAStepOfARun) {
  StrategyOptions options;
  options.bucket_bytes = 100 << 20;  // one reduce-scatter and one all-gather
  const PlannedStrategy dear =
      plan_run(find_strategy("dear"), options, measured_profile(), own_links(), 2, all_but_servers());
  const std::string why = reasons(dear, cluster_of_run(own_links(), 2), 2);
  EXPECT_NE(why.find("At 2 ranks: --strategy dear --bucket-mb 100\n"), std::string::npos) << why;
  EXPECT_NE(why.find("The busiest part of the way is the links as they were measured"), std::string::npos) << why;
  EXPECT_NE(why.find("Bandwidth bounds it: start-ups are 0.1 ms of that"), std::string::npos) << why;
}

TEST(Candidates, ComeFastestFirstAndSendDifferentMessages) {
  const auto found = find_candidates(measured_profile(), own_links(), 4, all_but_servers(), 100);
  ASSERT_GE(found.size(), 4U);
  for (std::size_t i = 1; i < found.size(); ++i) {
    EXPECT_GE(found[i].step.step_s, found[i - 1].step.step_s);
    for (std::size_t j = 0; j < i; ++j)
      EXPECT_FALSE(found[i].plan.transfers == found[j].plan.transfers &&
                   found[i].plan.barrier == found[j].plan.barrier &&
                   found[i].plan.sharded_optimizer == found[j].plan.sharded_optimizer &&
                   found[i].plan.max_in_flight == found[j].plan.max_in_flight)
          << found[i].name << " and " << found[j].name;
  }
  for (const PlannedStrategy& one : found) check_plan(one.plan);
}

TEST(Candidates, AreTakenFromAllStrategiesOfARun) {
  const auto all = plan_run(measured_profile(), own_links(), 4, all_but_servers());
  std::vector<std::string> expected, names;
  for (const Strategy& strategy : strategies())
    if (!strategy.uses_servers) expected.push_back(strategy.name);
  for (const PlannedStrategy& one : all) names.push_back(one.name);
  EXPECT_EQ(names, expected);
  for (const PlannedStrategy& one : find_candidates(measured_profile(), own_links(), 4, all_but_servers(), 3))
    EXPECT_TRUE(std::any_of(all.begin(), all.end(), [&](const PlannedStrategy& other) {
      return other.name == one.name && other.settings == one.settings && other.step.step_s == one.step.step_s;
    })) << one.name;
}

TEST(Candidates, HaveBspAmongThemHoweverSlowItIsPredictedToBe) {
  const auto found = find_candidates(measured_profile(), own_links(), 4, all_but_servers(), 2);
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found.back().name, "bsp");
}

TEST(Candidates, AreOnlyThoseThatMayRun) {
  CandidateRules rules = all_but_servers();
  rules.allows = [](const Strategy& strategy) { return std::string(strategy.name) == "wfbp"; };
  const auto found = find_candidates(measured_profile(), own_links(), 4, rules, 6);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].name, "wfbp");
}

TEST(Candidates, AreSimulatedAsTheEngineWillRunThem) {
  CandidateRules rules = all_but_servers();
  rules.adapt = [](Plan& plan) { plan.barrier = Barrier::optimizer_step, plan.sharded_optimizer = false; };
  for (const PlannedStrategy& one : find_candidates(measured_profile(), own_links(), 4, rules, 100))
    EXPECT_EQ(one.plan.barrier, Barrier::optimizer_step) << one.name;
}

TEST(LinkCost, IsInterpolatedBetweenSamplesAndExtendedBeyondThem) {
  const LinkCost links = fit_link_cost({{1000, 1e-3}, {2000, 1.5e-3}, {4000, 3.5e-3}});
  EXPECT_DOUBLE_EQ(links.interpolated(2000), 1.5e-3);
  EXPECT_DOUBLE_EQ(links.interpolated(3000), 2.5e-3);
  EXPECT_DOUBLE_EQ(links.interpolated(10), 1e-3);
  EXPECT_NEAR(links.interpolated(6000), 3.5e-3 + 2000 * links.per_byte_s, 1e-12);
}

}  // namespace
}  // namespace tutti
