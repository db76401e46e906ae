#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "report/chrome_trace.h"
#include "report/step_breakdown.h"

namespace tutti {
namespace {

using nlohmann::json;

/// Two layers; the second one's gradient comes first.
Plan two_transfers() {
  Plan plan;
  plan.strategy = "wfbp";
  plan.ranks = 2;
  plan.elements = 48;
  plan.slots = {{"block.fc.weight", 1, 0, 32}, {"conv.weight", 0, 32, 16}};
  plan.transfers.resize(2);
  plan.transfers[0].name = "block.fc.weight";
  plan.transfers[0].end = 32;
  plan.transfers[1].name = "conv.weight";
  plan.transfers[1].begin = 32;
  plan.transfers[1].end = 48;
  return plan;
}

/// A step of 100 ns that begins at `at`; its transfers run in [40, 50) and [65, 85), issued at once.
RankTrace one_step(int64_t at, int64_t step = 7) {
  RankTrace trace;
  const auto compute = [&](TraceKind kind, int64_t begin, int64_t end, int index = -1) {
    trace.compute.push_back({kind, index, step, at + begin, at + end});
  };
  compute(TraceKind::data_wait, 0, 5);
  compute(TraceKind::first_use, 6, 6, 0);
  compute(TraceKind::first_use, 20, 20, 1);
  compute(TraceKind::forward, 5, 30);
  compute(TraceKind::gradient, 40, 40, 1);
  compute(TraceKind::gradient, 60, 60, 0);
  compute(TraceKind::backward, 30, 61);
  compute(TraceKind::comm_wait, 62, 88);
  compute(TraceKind::update, 88, 98);
  compute(TraceKind::step, 0, 100);
  trace.communication = {{TraceKind::transfer, 0, step, at + 40, at + 50, at + 39, at + 40},
                         {TraceKind::transfer, 1, step, at + 65, at + 85, at + 60, at + 65}};
  return trace;
}

std::vector<json> events_of(const json& trace, const std::string& phase, int rank, const std::string& category) {
  std::vector<json> events;
  for (const json& event : trace.at("traceEvents"))
    if (event.at("ph") == phase && event.at("pid") == rank && (category.empty() || event.at("cat") == category))
      events.push_back(event);
  return events;
}

TEST(ChromeTrace, IsAProcessPerRankWithNamedThreads) {
  const json trace = json::parse(chrome_trace({one_step(1000), one_step(1010)}, two_transfers()));
  for (int rank = 0; rank < 2; ++rank) {
    std::set<std::string> names;
    for (const json& event : events_of(trace, "M", rank, "")) names.insert(event.at("args").at("name"));
    EXPECT_EQ(names, (std::set<std::string>{"rank " + std::to_string(rank), "compute", "communication"}));
  }
}

TEST(ChromeTrace, NamesLayersByTheirModules) {
  const json trace = json::parse(chrome_trace({one_step(1000)}, two_transfers()));
  std::vector<std::string> shown;
  for (const char* category : {"forward", "backward"})
    for (const json& event : events_of(trace, "X", 0, category))
      shown.push_back(event.at("name").get<std::string>() + " " + event.at("ts").dump() + " " + event.at("dur").dump());
  // A layer's forward lasts until the next one's begins, its backward since the one before has its gradients.
  EXPECT_EQ(shown, (std::vector<std::string>{"forward 0.005 0.025", "conv 0.006 0.014", "block.fc 0.02 0.01",
                                             "backward 0.03 0.031", "block.fc 0.03 0.01", "conv 0.04 0.02"}));
}

TEST(ChromeTrace, ShowsEveryTransferWithWhatItCarries) {
  const json trace = json::parse(chrome_trace({one_step(1000)}, two_transfers()));
  const std::vector<json> transfers = events_of(trace, "X", 0, "transfer");
  ASSERT_EQ(transfers.size(), 2u);
  EXPECT_EQ(transfers[1].at("name"), "all_reduce conv.weight");
  const json& arguments = transfers[1].at("args");
  EXPECT_EQ(arguments.at("transfer"), 1);
  EXPECT_EQ(arguments.at("bytes"), 64);
  EXPECT_EQ(arguments.at("step"), 7);
  EXPECT_DOUBLE_EQ(arguments.at("startable_us_before").get<double>(), 0.005);
}

TEST(ChromeTrace, PutsRanksOfOtherMachinesOnRank0sClock) {
  RankTrace far = one_step(500'000);
  far.clock_offset_ns = -499'000;
  const json trace = json::parse(chrome_trace({one_step(1000), far}, two_transfers()));
  EXPECT_EQ(events_of(trace, "X", 0, "step")[0].at("ts"), events_of(trace, "X", 1, "step")[0].at("ts"));
  EXPECT_EQ(trace.at("otherData").at("clock_offset_ns"), (json{0, -499'000}));
}

TEST(RankTrace, SurvivesTheJourneyToRank0) {
  RankTrace trace = one_step(1000);
  trace.clock_offset_ns = 5;
  const RankTrace copy = json::parse(json(trace).dump()).get<RankTrace>();
  EXPECT_EQ(copy.compute, trace.compute);
  EXPECT_EQ(copy.communication, trace.communication);
  EXPECT_EQ(copy.clock_offset_ns, 5);
}

TEST(Trace, RecordsItsWindowAndTheTransfersOfTheStepBefore) {
  Trace trace({3, 2});
  std::vector<int64_t> steps, comm_steps;
  for (int64_t step = 0; step < 8; ++step) {
    trace.begin_step(step);
    if (trace.compute() != nullptr) steps.push_back(step);
    trace.begin_communication(step);
    if (trace.communication() != nullptr) comm_steps.push_back(step);
    EXPECT_EQ(trace.is_over(), step > 4);
    trace.end_step();
  }
  EXPECT_EQ(steps, (std::vector<int64_t>{3, 4}));
  EXPECT_EQ(comm_steps, (std::vector<int64_t>{2, 3, 4}));
  EXPECT_EQ(trace.compute_events().size(), 2u);  // the steps themselves
}

TEST(Trace, HasAsManyStepsWhereSomeAreLeftOut) {
  Trace trace({3, 2});
  std::vector<int64_t> steps;
  for (int64_t step = 0; step < 9; ++step) {
    if (step == 3 || step == 5) {
      ASSERT_TRUE(trace.includes(step));
      trace.leave_out(step);
      EXPECT_EQ(trace.compute(), nullptr);
      continue;
    }
    trace.begin_step(step);
    if (trace.compute() != nullptr) steps.push_back(step);
    trace.end_step();
  }
  EXPECT_EQ(steps, (std::vector<int64_t>{4, 6}));
  EXPECT_EQ(trace.left_out(), 2);
  EXPECT_TRUE(trace.is_over());
}

TEST(StepBreakdown, GivesEveryPartOfAWaitItsCause) {
  // Rank 1 hands the second transfer over 9 ns later than rank 0. A start-up takes 4 ns.
  RankTrace late = one_step(1000);
  late.communication[1].begin_ns = late.communication[1].issued_ns = 1074;
  Links links;
  links.all_reduce.startup_s = 4e-9;
  const StepBreakdown result = break_down({one_step(1000), late}, two_transfers(), links);
  EXPECT_EQ(result.first_step, 7);
  EXPECT_EQ(result.steps, 1);
  const RankBreakdown& rank = result.ranks.at(0);
  const auto expect_ns = [](double seconds, double ns) { EXPECT_NEAR(seconds * 1e9, ns, 1e-6); };
  expect_ns(rank.step_s, 100);
  expect_ns(rank.data_wait_s, 5);
  expect_ns(rank.compute_s, 25 + 31);
  expect_ns(rank.optimizer_s, 10);
  expect_ns(rank.slowest_rank_s, 9);  // 65 to 74
  expect_ns(rank.startup_s, 4);       // 74 to 78
  expect_ns(rank.bandwidth_s, 7);     // 78 to 85
  expect_ns(rank.scheduling_s, 6);    // 62 to 65, 85 to 88
  expect_ns(rank.other_s, 100 - 5 - 56 - 10 - 26);
  expect_ns(rank.comm_s, 10 + 11);
  expect_ns(result.ranks.at(1).slowest_rank_s, 0);
  expect_ns(result.ranks.at(1).scheduling_s, 15);  // 62 to 74, 85 to 88
  expect_ns(result.ranks.at(1).caused_s, 9);
  expect_ns(result.ranks.at(0).caused_s, 0);
  expect_ns(result.transfers.at(0).exposed_s, 0);
  expect_ns(result.transfers.at(1).exposed_s, (20 + 11) / 2.0);
  expect_ns(result.transfers.at(1).skew_s, 9 / 2.0);
}

TEST(StepBreakdown, TakesAWaitInForwardOutOfComputation) {
  RankTrace trace = one_step(1000);
  trace.compute.push_back({TraceKind::comm_wait, -1, 7, 1010, 1018});
  trace.communication.insert(trace.communication.begin(), {TraceKind::update, 1, 6, 1008, 1016});
  const StepBreakdown result = break_down({trace}, two_transfers(), {});
  const RankBreakdown& rank = result.ranks.at(0);
  EXPECT_NEAR(rank.compute_s * 1e9, 56 - 8, 1e-6);
  EXPECT_NEAR(rank.optimizer_s * 1e9, 10 + 6, 1e-6);  // the wait was for an update on the other thread
  EXPECT_NEAR(rank.step_s, rank.compute_s + rank.data_wait_s + rank.optimizer_s + rank.exposed_s() + rank.other_s,
              1e-15);
}

TEST(StepBreakdown, CountsAnUpdateMadeWhileForwardWaitedAsTheOptimizersTime) {
  RankTrace trace = one_step(1000);
  trace.compute.push_back({TraceKind::update, 1, 7, 1010, 1018});
  const RankBreakdown rank = break_down({trace}, two_transfers(), {}).ranks.at(0);
  EXPECT_NEAR(rank.compute_s * 1e9, 56 - 8, 1e-6);
  EXPECT_NEAR(rank.optimizer_s * 1e9, 10 + 8, 1e-6);
  EXPECT_NEAR(rank.step_s, rank.compute_s + rank.data_wait_s + rank.optimizer_s + rank.exposed_s() + rank.other_s,
              1e-15);
}

TEST(StepBreakdown, TakesTheStartUpFromTheSmallestTransferOrAdmitsNotToKnow) {
  const StepBreakdown small = break_down({one_step(1000)}, two_transfers(), {});
  EXPECT_EQ(small.startup_from, "smallest");
  EXPECT_NEAR(small.startup_s * 1e9, 10, 1e-6);
  Plan large = two_transfers();
  for (Transfer& transfer : large.transfers) transfer.end += 1 << 20;
  EXPECT_EQ(break_down({one_step(1000)}, large, {}).startup_from, "");
}

TEST(StepBreakdown, PairsWaitsWithTheTransfersOfTheStepBeforeWhereTheyCrossSteps) {
  Plan plan = two_transfers();
  plan.barrier = Barrier::next_forward;
  RankTrace trace = one_step(1000, 8);
  for (TraceEvent& event : trace.communication) event.step = 7;
  EXPECT_NEAR(break_down({trace}, plan, {}).transfers.at(1).busy_s * 1e9, 20, 1e-6);
  EXPECT_NEAR(break_down({trace}, two_transfers(), {}).transfers.at(1).busy_s * 1e9, 0, 1e-6);
}

TEST(StepBreakdown, SaysWhetherTimesAreThoseOfADevice) {
  RankTrace trace = one_step(1000);
  EXPECT_FALSE(break_down({trace}, two_transfers(), {}).is_of_device);
  trace.is_of_device = true;
  EXPECT_TRUE(break_down({json::parse(json(trace).dump()).get<RankTrace>()}, two_transfers(), {}).is_of_device);
}

TEST(StepBreakdown, CountsOnlyStepsThatEveryRankHas) {
  EXPECT_EQ(break_down({one_step(1000, 7), one_step(1000, 8)}, two_transfers(), {}).steps, 0);
  EXPECT_EQ(break_down({RankTrace{}, RankTrace{}}, two_transfers(), {}).steps, 0);
}

}  // namespace
}  // namespace tutti
