#include "sim/planner.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "some_cluster.h"
#include "tutti/error.h"

namespace tutti {
namespace {

Workload resnet(double batch) {
  Workload workload;
  workload.model = "resnet50";
  workload.shape = model_shape("resnet50");
  workload.batch = batch;
  return workload;
}

TEST(Planner, ShowsEveryStrategyWithTheBestOfItsSizes) {
  const Cluster cluster = some_cluster(4, 2);
  const auto planned = plan_all(resnet(16), cluster, 8);
  ASSERT_EQ(planned.size(), strategies().size());
  StrategyOptions one_mebibyte;
  one_mebibyte.bucket_bytes = 1 << 20;
  const double small_s = plan_strategy(resnet(16), cluster, 8, "buckets", one_mebibyte).step.step_s;
  for (const PlannedStrategy& one : planned) {
    EXPECT_LE(best_of(planned).step.step_s, one.step.step_s * 1.02 + 1e-12) << one.name;
    if (one.name == "buckets") {
      EXPECT_LE(one.step.step_s, small_s);
      EXPECT_NE(one.settings.find("--bucket-mb"), std::string::npos);
    }
  }
}

TEST(Planner, RecommendsNothingThatWasMeasuredToBeSlower) {
  std::vector<PlannedStrategy> planned(3);
  const char* const names[] = {"bsp", "wfbp", "dear"};
  const double predicted_s[] = {0.050, 0.040, 0.039};
  for (std::size_t i = 0; i < planned.size(); ++i) {
    planned[i].name = names[i];
    planned[i].step.step_s = predicted_s[i];
  }
  EXPECT_EQ(best_of(planned).name, "dear");
  EXPECT_EQ(best_of(planned, {0.052, 0.041, 0.060}).name, "wfbp");
  EXPECT_EQ(best_of(planned, {0.045, 0.050, std::nullopt}).name, "dear");  // 0.039 times 1.075, the usual
  EXPECT_EQ(best_of(planned, {0.040, 0.060, std::nullopt}).name, "bsp");   // 0.039 times 1.15 is more
}

TEST(Planner, LosesEfficiencyWithRanksAndGainsItWithTheBatch) {
  const Cluster cluster = some_cluster(16, 2);
  const auto efficiency = [&](double batch, int ranks) {
    return best_of(plan_all(resnet(batch), cluster, ranks)).efficiency;
  };
  EXPECT_NEAR(best_of(plan_all(resnet(16), cluster, 1)).efficiency, 1, 1e-9);
  EXPECT_GT(efficiency(16, 2), efficiency(16, 32));
  EXPECT_LT(efficiency(16, 32), efficiency(64, 32));
}

TEST(Planner, FindsTheSizeAtWhichEfficiencyFallsUnderABound) {
  Cluster cluster = some_cluster(16, 2);
  cluster.network.bytes_per_s = 0.2e9;
  const int size = size_below(resnet(16), cluster, 0.6);
  ASSERT_GT(size, 2);
  EXPECT_LT(best_of(plan_all(resnet(16), cluster, size)).efficiency, 0.6);
  EXPECT_GE(best_of(plan_all(resnet(16), cluster, size / 2)).efficiency, 0.6);
  EXPECT_EQ(size_below(resnet(16), cluster, 0.0001), 0);
}

TEST(Planner, AsksForMoreServersWhereMoreNodesPush) {
  const Cluster cluster = some_cluster(16, 1);
  EXPECT_LE(servers_needed(resnet(16), cluster, 2), servers_needed(resnet(16), cluster, 16));
}

TEST(Planner, AsksForTheFewestServersThatAreWithinTwoPercentOfTwoANode) {
  Cluster cluster = some_cluster(8, 1);
  cluster.network.bytes_per_s = 0.2e9;
  const auto step_s = [&](int servers) {
    StrategyOptions options;
    options.servers = servers;
    options.credit_bytes = 64 * options.partition_bytes;
    return plan_strategy(resnet(16), cluster, 8, "wfbp-ps", options).step.step_s;
  };
  const int needed = servers_needed(resnet(16), cluster, 8);
  ASSERT_GT(needed, 1);
  EXPECT_LE(needed, 16);
  EXPECT_LE(step_s(needed), step_s(16) * 1.02);
  EXPECT_GT(step_s(needed / 2), step_s(16) * 1.02);
}

TEST(Planner, SaysHowMuchOfAStepIsExposedAndHowLongTheBusiestPartIsUsed) {
  Cluster cluster = some_cluster(4, 1);
  cluster.network.bytes_per_s = 0.01e9;
  const PlannedStrategy planned = plan_strategy(resnet(64), cluster, 4, "bsp", {});
  // All in one ring: 1.5 times 25.6 million gradients of four bytes at 10 MB/s, after backward.
  const double ring_s = 1.5 * static_cast<double>(planned.plan.elements) * 4 / 0.01e9;
  EXPECT_NE(
      reasons(planned, cluster, 4)
          .find(fmt::format("{:.0f} % of the step is exposed communication. The busiest part of the way is the ring "
                            "of all ranks: {:.1f} ms of a step of {:.1f} ms.",
                            ring_s / planned.step.step_s * 100, ring_s * 1e3, planned.step.step_s * 1e3)),
      std::string::npos)
      << reasons(planned, cluster, 4);
}

TEST(Planner, SaysWhatBoundsAStep) {
  Cluster slow = some_cluster(4, 1), fast = some_cluster(4, 1);
  slow.network.bytes_per_s = 0.01e9;
  fast.network.bytes_per_s = 100e9;
  fast.network.startup_s = 1e-9;
  const auto why = [](const Cluster& cluster) {
    return reasons(plan_strategy(resnet(64), cluster, 4, "buckets", {}), cluster, 4);
  };
  EXPECT_NE(why(slow).find("Bandwidth bounds it"), std::string::npos) << why(slow);
  EXPECT_NE(why(fast).find("Computation bounds it"), std::string::npos) << why(fast);
}

TEST(Planner, AnswersWhatAFasterNetworkOrMoreWorkPerStepWouldBring) {
  Cluster cluster = some_cluster(8, 1);
  const double now = best_of(plan_all(resnet(16), cluster, 8)).samples_per_s;
  for (const WhatIf& change : what_ifs(resnet(16), cluster, 8))
    EXPECT_GE(change.samples_per_s, now * 0.999) << change.change;
}

TEST(Planner, KeepsToTheServersThatThereAre) {
  Cluster cluster = some_cluster(8, 1);
  cluster.network.bytes_per_s = 0.05e9;
  const Workload workload = resnet(64);
  // A ring of eight sends 1.75 times the gradients over each link; with eight servers it is once; one server takes all.
  for (const WhatIf& change : what_ifs(workload, cluster, 8, 1))
    EXPECT_LE(change.best.plan.servers, 1) << change.change << ": " << change.best.name;
  const auto with_servers = what_ifs(workload, cluster, 8);
  EXPECT_TRUE(std::any_of(with_servers.begin(), with_servers.end(),
                          [](const WhatIf& change) { return change.best.plan.servers == 8; }));
  const double between =
      (best_of(plan_all(workload, cluster, 8, 1)).efficiency + best_of(plan_all(workload, cluster, 8, 8)).efficiency) /
      2;
  EXPECT_GT(size_below(workload, cluster, between, 1), 0);
  EXPECT_EQ(size_below(workload, cluster, between), 0);
}

TEST(Planner, TakesAMeasuredProfileInsteadOfAComputedOne) {
  Workload workload;
  workload.batch = 10;
  workload.measured = compute_profile(model_shape("resnet18"), Device{"device", 1e12, 100e9}, 10);
  const Cluster cluster = some_cluster(2, 1);
  const double alone_s = workload.measured.forward_s + workload.measured.backward_s;
  EXPECT_NEAR(single_rate(workload, cluster), 10 / alone_s, 1e-6);
}

TEST(Planner, CountsMicroBatchesAsThatManyPassesOfForwardAndBackward) {
  Workload workload;
  workload.batch = 10;
  workload.measured = compute_profile(model_shape("resnet18"), Device{"device", 1e12, 100e9}, 10);
  const Cluster cluster = some_cluster(2, 1);
  const double once = single_rate(workload, cluster);
  workload.accumulate = 3;
  EXPECT_NEAR(single_rate(workload, cluster), once, once * 1e-9);
}

TEST(Planner, RefusesMoreRanksThanTheClusterHas) {
  EXPECT_THROW(plan_all(resnet(16), some_cluster(2, 2), 5), UsageError);
}

TEST(Planner, SimulatesUnequalNodes) {
  Cluster cluster = some_cluster(1, 2);
  cluster.groups.push_back({1, 2, Device{"slow", 2e12, 100e9}});
  const Workload workload = resnet(16);
  const double mixed_s = plan_strategy(workload, cluster, 4, "bsp", {}).step.compute_s;
  EXPECT_NEAR(mixed_s,
              16 / single_rate(workload,
                               [&] {
                                 Cluster slow = cluster;
                                 slow.groups.erase(slow.groups.begin());
                                 return slow;
                               }()),
              1e-9);
}

}  // namespace
}  // namespace tutti
