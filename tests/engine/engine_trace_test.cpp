// What an engine's two threads write to a trace, under every strategy.
#include <gtest/gtest.h>

#include <map>

#include "base/trace.h"
#include "networks.h"
#include "support/rank_threads.h"
#include "support/test_servers.h"
#include "tutti/tuned_engine.h"

namespace tutti {
namespace {

constexpr int64_t kFirst = 5, kSteps = 4;

void train_traced(const std::string& strategy, int accumulate, Communicator& comm, const TestServers& servers,
                  Trace& trace, Plan& plan) {
  torch::manual_seed(9);
  BatchNormNetwork model;
  TuneOptions options;
  options.strategy = strategy;
  options.strategy_options.bucket_bytes = 300;
  options.strategy_options.first_bucket_bytes = 100;
  options.strategy_options.partition_bytes = 128;
  options.trace = &trace;
  const auto connection = servers.connect(comm.rank());
  if (connection) options.servers = &connection->push_pull();
  TunedEngine engine(model, comm, options);
  for (int step = 0; step < kFirst + kSteps + 2; ++step) {
    engine.begin_step();
    for (int micro = 0; micro < accumulate; ++micro)
      engine.backward(model.loss(make_samples((step * comm.size() + comm.rank()) * 4, 4)),
                      1.0 / (comm.size() * accumulate), micro + 1 == accumulate);
    engine.finish_step(0.05);
  }
  engine.settle();
  plan = engine.plan();
  if (connection) connection->stop();
}

void expect_nested(const std::vector<TraceEvent>& events, const std::string& where) {
  for (const TraceEvent& a : events) {
    EXPECT_LE(a.begin_ns, a.end_ns) << where;
    for (const TraceEvent& b : events) {
      const bool apart = a.end_ns <= b.begin_ns || b.end_ns <= a.begin_ns;
      const bool inside =
          (a.begin_ns <= b.begin_ns && b.end_ns <= a.end_ns) || (b.begin_ns <= a.begin_ns && a.end_ns <= b.end_ns);
      EXPECT_TRUE(apart || inside) << where << ": kinds " << static_cast<int>(a.kind) << " and "
                                   << static_cast<int>(b.kind) << " of step " << a.step;
    }
  }
}

class EngineTrace : public testing::TestWithParam<std::string> {};

TEST_P(EngineTrace, HasEveryStepLayerAndTransferOfItsWindowOnEveryRank) {
  for (const int accumulate : {1, 2}) {
    std::vector<std::unique_ptr<Trace>> traces;
    for (int rank = 0; rank < 2; ++rank) traces.push_back(std::make_unique<Trace>(TraceWindow{kFirst, kSteps}));
    std::vector<Plan> plans(2);
    const TestServers servers(GetParam(), 2, 0);
    const auto errors = run_rank_threads(2, [&](Communicator& comm) {
      const auto rank = static_cast<std::size_t>(comm.rank());
      train_traced(GetParam(), accumulate, comm, servers, *traces[rank], plans[rank]);
    });
    for (const std::string& error : errors) EXPECT_EQ(error, "");
    for (const auto& trace : traces) {
      std::map<TraceKind, std::map<std::pair<int64_t, int>, int>> counts;
      for (const auto* events : {&trace->compute_events(), &trace->communication_events()})
        for (const TraceEvent& event : *events) ++counts[event.kind][{event.step, event.index}];
      for (int64_t step = kFirst; step < kFirst + kSteps; ++step) {
        EXPECT_EQ((counts[TraceKind::step][{step, -1}]), 1);
        EXPECT_EQ((counts[TraceKind::forward][{step, -1}]), accumulate);
        EXPECT_EQ((counts[TraceKind::backward][{step, -1}]), accumulate);
        for (const GradientSlot& slot : plans[0].slots) {
          EXPECT_EQ((counts[TraceKind::first_use][{step, slot.parameter}]), accumulate) << slot.name;
          EXPECT_EQ((counts[TraceKind::gradient][{step, slot.parameter}]), accumulate) << slot.name;
        }
        for (std::size_t i = 0; i < plans[0].transfers.size(); ++i)
          EXPECT_EQ((counts[TraceKind::transfer][{step, static_cast<int>(i)}]), 1) << "transfer " << i;
      }
      EXPECT_EQ(counts[TraceKind::step].size(), static_cast<std::size_t>(kSteps));
      EXPECT_EQ(counts[TraceKind::transfer].size(), plans[0].transfers.size() * (kSteps + 1));
      EXPECT_FALSE(counts[TraceKind::update].empty());
      for (const TraceEvent& event : trace->communication_events()) {
        if (event.kind != TraceKind::transfer) continue;
        EXPECT_GT(event.queued_ns, 0);
        EXPECT_LE(event.queued_ns, event.begin_ns);
        EXPECT_LE(event.begin_ns, event.issued_ns);
        EXPECT_LE(event.issued_ns, event.end_ns);
      }
      expect_nested(trace->compute_events(), "compute");
      expect_nested(trace->communication_events(), "communication");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Under, EngineTrace, testing::ValuesIn(strategy_names()));

}  // namespace
}  // namespace tutti
