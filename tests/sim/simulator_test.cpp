#include "sim/simulator.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "plan/cost_model.h"
#include "plan/plan_cursor.h"
#include "plan/profiles.h"
#include "sim/message_cost.h"
#include "some_cluster.h"
#include "tutti/error.h"
#include "tutti/strategy.h"

namespace tutti {
namespace {

SimulatedStep run(const Plan& plan, const Profile& profile, const Cluster& cluster, int ranks) {
  return simulate(plan, {profile}, cluster, lay_out(cluster, ranks));
}

double alone_s(const Profile& profile) { return profile.forward_s + profile.backward_s; }

TEST(Simulator, AddsTheWholeTransferWhereNothingOverlaps) {
  const Profile profile = profile_of({1'000'000, 2'000'000});
  const Cluster cluster = some_cluster(2, 1);
  const Plan plan = make_bsp_plan(profile, {}, 2, {});
  const SimulatedStep step = run(plan, profile, cluster, 2);
  const double message_s = 12e6 / 1e9;  // 2 (P - 1) / P is 1
  EXPECT_NEAR(step.step_s, alone_s(profile) + message_s, 1e-6);
  EXPECT_NEAR(step.exposed_s, message_s, 1e-6);
  EXPECT_NEAR(step.waited_s, message_s, 1e-6);
}

TEST(Simulator, HidesATransferThatEndsBeforeBackward) {
  Profile profile = profile_of({100'000, 16});  // 0.4 MB need 0.4 ms of the 1 ms until the second gradient
  const Cluster cluster = some_cluster(2, 1);
  const SimulatedStep step = run(make_wfbp_plan(profile, {}, 2, {}), profile, cluster, 2);
  EXPECT_NEAR(step.exposed_s, 2 * 50e-6, 1e-9);  // the second alone
}

TEST(Simulator, TakesComputationAloneForOneRank) {
  const Profile profile = profile_of({1000, 1000});
  const SimulatedStep step = run(make_bsp_plan(profile, {}, 1, {}), profile, some_cluster(1, 1), 1);
  EXPECT_NEAR(step.step_s, alone_s(profile), 1e-12);
  EXPECT_EQ(step.exposed_s, 0);
}

TEST(Simulator, SlowsComputationWhileTransfersRunBesideIt) {
  const Profile profile = profile_of({250'000, 16});  // 1 MB: as long as the millisecond of backward that is left
  Cluster cluster = some_cluster(2, 1);
  cluster.software.slowdown = 0.5;
  const SimulatedStep step = run(make_wfbp_plan(profile, {}, 2, {}), profile, cluster, 2);
  // 1 ms beside it brings 0.667 ms of backward; the rest follows at full speed, then the second transfer.
  EXPECT_NEAR(step.step_s, profile.forward_s + 1e-3 + 1e-3 + (1e-3 - 1e-3 / 1.5) + 2 * 50e-6, 1e-9);
}

TEST(Simulator, LeavesComputationAloneWhileATransferIsLaunched) {
  const Profile profile = profile_of({250'000, 16});  // 1 MB takes 1 ms, and as much is left of backward
  Cluster cluster = some_cluster(2, 1);
  cluster.software.slowdown = 0.5;
  cluster.software.launch_s = 0.4e-3;
  const SimulatedStep step = run(make_wfbp_plan(profile, {}, 2, {}), profile, cluster, 2);
  // 0.4 ms of backward as fast as ever, the other 0.6 ms beside the transfer, which ends last; then the second one.
  EXPECT_NEAR(step.step_s, profile.forward_s + 1e-3 + 1.4e-3 + 0.4e-3 + 2 * 50e-6, 1e-9);
}

TEST(Simulator, AsksForSumsBehindThePushesThatWait) {
  const Profile profile = profile_of({8'000'000});
  Cluster cluster = some_cluster(2, 1);
  cluster.inside.bytes_per_s = 1e18;
  cluster.inside.startup_s = cluster.network.startup_s = 0;
  StrategyOptions options;
  options.partition_bytes = 4'000'000;
  options.credit_bytes = 32'000'000;
  options.servers = 8;
  const Plan plan = make_bsp_ps_plan(profile, {}, 2, options);
  ASSERT_EQ(plan.transfers.size(), 8u);
  // 4 ms for a push or a pull, and 8 ms at a server, for both workers, each way: 8 pushes one behind the other, the way
  // of the last through its server, its pull.
  EXPECT_NEAR(run(plan, profile, cluster, 2).exposed_s, (8 * 4 + 8 + 8 + 4) * 1e-3, 1e-9);
  cluster.software.asks_for_sums = true;  // 8 pushes, a server's answer, 8 pulls
  EXPECT_NEAR(run(plan, profile, cluster, 2).exposed_s, (8 * 4 + 8 + 8 * 4) * 1e-3, 1e-9);
}

TEST(Simulator, FindsEveryTensorAgainThatTravelledWithOthers) {
  const Profile profile = profile_of({1000, 1000, 1000});
  Cluster cluster = some_cluster(2, 1);
  const auto step_s = [&](const Plan& plan) { return run(plan, profile, cluster, 2).step_s; };
  const Plan merged = make_bsp_plan(profile, {}, 2, {}), apart = make_wfbp_plan(profile, {}, 2, {});
  const double merged_s = step_s(merged), apart_s = step_s(apart);
  cluster.software.unmerge_s = 20e-6;
  EXPECT_NEAR(step_s(merged), merged_s + 3 * 20e-6, 1e-12);
  EXPECT_NEAR(step_s(apart), apart_s, 1e-12);
}

TEST(Simulator, SlowsTransfersOnTheDeviceWhileItComputes) {
  Cluster cluster = some_cluster(1, 2);
  cluster.inside.startup_s = 0;
  cluster.software.transfer_slowdown = 1;
  // 10 MB take 1 ms alone and 2 ms beside computation: half is done when backward ends after 1 ms more.
  const Profile profile = profile_of({2'500'000, 16});
  const SimulatedStep step = run(make_wfbp_plan(profile, {}, 2, {}), profile, cluster, 2);
  EXPECT_NEAR(step.waited_s, 0.5e-3 + 64 / 10e9, 1e-8);
}

TEST(Simulator, WaitsForTheSlowestKindOfRank) {
  const Profile fast = profile_of({1000, 1000}), slow = [&] {
    Profile profile = fast;
    profile.forward_s *= 3;
    return profile;
  }();
  const Cluster cluster = some_cluster(2, 1);
  Layout layout = lay_out(cluster, 2);
  const Plan plan = make_bsp_plan(fast, {}, 2, {});
  EXPECT_NEAR(simulate(plan, {fast, slow}, cluster, layout).step_s, simulate(plan, {slow}, cluster, layout).step_s,
              1e-9);
  EXPECT_NEAR(simulate(plan, {slow, fast}, cluster, layout).step_s, simulate(plan, {slow}, cluster, layout).step_s,
              1e-9);
}

TEST(Simulator, HidesGathersBehindTheNextForward) {
  // Two groups of 0.25 ms each way. Forward first needs a parameter after 0.5 ms: by then the last reduce-scatter and
  // its gather are through, and the other gather comes before it is needed. One all-reduce takes 1 ms.
  const Profile profile = profile_of({125'000, 125'000});
  Cluster cluster = some_cluster(2, 1);
  cluster.network.startup_s = 0;
  StrategyOptions options;
  options.bucket_bytes = 1;
  EXPECT_NEAR(run(make_dear_plan(profile, {}, 2, options), profile, cluster, 2).exposed_s, 0, 1e-7);
  EXPECT_NEAR(run(make_bsp_plan(profile, {}, 2, options), profile, cluster, 2).exposed_s, 1e-3, 1e-6);
}

TEST(Simulator, RefusesAPlanOfAnotherModel) {
  const Profile one = profile_of({10}), two = profile_of({10, 10});
  EXPECT_THROW(run(make_bsp_plan(two, {}, 2, {}), one, some_cluster(2, 1), 2), Error);
}

TEST(Simulator, AgreesWithTheModelThatStrategiesPlanWith) {
  // Where transfers pass one after the other and nothing else costs, both are the same model.
  std::mt19937 random(1);
  Cluster cluster = some_cluster(4, 1);
  cluster.network.startup_s = 0;
  cluster.software.launch_s = 300e-6;
  const Layout layout = lay_out(cluster, 4);
  Links links;
  links.all_reduce.startup_s = 300e-6;
  links.all_reduce.per_byte_s = 1.5e-9;
  for (int i = 0; i < 50; ++i) {
    const Profile profile = random_profile(random);
    for (const auto make : {make_bsp_plan, make_wfbp_plan, make_buckets_plan, make_fusion_plan, make_mgwfbp_plan}) {
      const Plan plan = make(profile, links, 4, {});
      EXPECT_NEAR(simulate(plan, {profile}, cluster, layout).step_s, predict_step(plan, profile, links).step_s, 1e-9)
          << plan.strategy << ", case " << i;
    }
  }
}

/// The transfers of one step as the engine starts them: its communication thread asks the same cursor, as many at once
/// as the plan allows, and completes the oldest first.
std::vector<std::size_t> issued_by_engine(const Plan& plan) {
  PlanCursor cursor(plan);
  std::vector<std::size_t> issued;
  std::vector<std::size_t> under_way;
  const auto pump = [&] {
    while (true) {
      while (static_cast<int>(under_way.size()) < plan.max_in_flight) {
        const auto next = cursor.start_next();
        if (!next) break;
        issued.push_back(*next);
        under_way.push_back(*next);
      }
      if (under_way.empty()) return;
      cursor.transfer_done(under_way.front());
      under_way.erase(under_way.begin());
    }
  };
  for (std::size_t slot = 0; slot < plan.slots.size(); ++slot) {
    cursor.gradient_ready(slot);
    pump();
  }
  cursor.backward_done();
  pump();
  return issued;
}

TEST(Simulator, IssuesTheTransfersOfTheEngineInItsOrder) {
  std::mt19937 random(2);
  for (int i = 0; i < 25; ++i) {
    const Profile profile = random_profile(random);
    const int nodes = 2 + static_cast<int>(random() % 3), devices = 1 + static_cast<int>(random() % 3);
    Cluster cluster = some_cluster(nodes, devices);
    cluster.software.slowdown = 0.1;
    cluster.software.transfer_slowdown = 0.3;
    const int ranks = nodes * devices;
    const Layout layout = lay_out(cluster, ranks);
    for (const Strategy& strategy : strategies()) {
      StrategyOptions options;
      options.servers = nodes;
      options.bucket_bytes = 1 << 20;
      options.partition_bytes = 1 << 20;
      const Links links = links_of(cluster, layout, nodes);
      const Plan plan = strategy.make_plan(profile, links, ranks, options);
      const SimulatedStep step = simulate(plan, {profile}, cluster, layout);
      EXPECT_EQ(step.issued, issued_by_engine(plan)) << strategy.name << ", case " << i;
      EXPECT_EQ(step.issued.size(), plan.transfers.size()) << strategy.name;
      EXPECT_GE(step.step_s, alone_s(profile) - 1e-9) << strategy.name;
    }
  }
}

TEST(Simulator, NeverGetsSlowerWithAFasterNetwork) {
  std::mt19937 random(3);
  for (int i = 0; i < 25; ++i) {
    const Profile profile = random_profile(random);
    Cluster cluster = some_cluster(4, 2);
    const Plan plan = make_buckets_plan(profile, {}, 8, {});
    double before = 1e9;
    for (const double bytes_per_s : {0.1e9, 0.3e9, 1e9, 3e9, 20e9}) {
      cluster.network.bytes_per_s = bytes_per_s;
      const double step_s = run(plan, profile, cluster, 8).step_s;
      EXPECT_LE(step_s, before + 1e-9);
      before = step_s;
    }
  }
}

TEST(Simulator, TakesAsManyEventsForThousandRanksAsForEight) {
  const Profile profile = profile_of(std::vector<int64_t>(200, 100'000));
  const Plan plan = make_wfbp_plan(profile, {}, 1024, {});
  EXPECT_EQ(run(plan, profile, some_cluster(128, 8), 1024).events, run(plan, profile, some_cluster(4, 2), 8).events);
}

TEST(Simulator, RecordsATimelineOfTheSteadyStep) {
  const Profile profile = profile_of({100'000, 100'000});
  const Cluster cluster = some_cluster(2, 1);
  const Plan plan = make_wfbp_plan(profile, {}, 2, {});
  const SimulatedStep step = simulate(plan, {profile}, cluster, lay_out(cluster, 2), {"sgd", true});
  ASSERT_EQ(step.trace.communication.size(), 2u);
  EXPECT_EQ(step.trace.communication[0].index, 0);
  EXPECT_LE(step.trace.communication[0].end_ns, step.trace.communication[1].begin_ns);
  std::vector<TraceKind> kinds;
  for (const TraceEvent& event : step.trace.compute) kinds.push_back(event.kind);
  EXPECT_EQ(kinds,
            (std::vector<TraceKind>{TraceKind::forward, TraceKind::backward, TraceKind::comm_wait, TraceKind::update}));
}

}  // namespace
}  // namespace tutti
