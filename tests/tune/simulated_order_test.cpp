// The simulator runs a plan as the engine does: the same transfers, started in the same order.
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>

#include <algorithm>
#include <random>

#include "sim/own_engine.h"
#include "support/rank_threads.h"
#include "support/test_servers.h"
#include "tutti/tuned_engine.h"

namespace tutti {
namespace {

constexpr int64_t kFirst = 6, kSteps = 3;

/// Layers of random widths, so that profiles differ in everything.
struct RandomNetwork : torch::nn::Module {
  explicit RandomNetwork(unsigned seed) {
    std::mt19937 random(seed);
    int64_t inputs = 4;
    const int count = 2 + static_cast<int>(random() % 6);
    for (int i = 0; i < count; ++i) {
      const int64_t outputs = 1 + static_cast<int64_t>(random() % (random() % 2 == 0 ? 8 : 300));
      layers.push_back(register_module("layer" + std::to_string(i), torch::nn::Linear(inputs, outputs)));
      inputs = outputs;
    }
  }
  torch::Tensor loss() {
    torch::Tensor x = torch::ones({2, 4});
    for (torch::nn::Linear& layer : layers) x = torch::tanh(layer(x));
    return x.pow(2).mean();
  }
  std::vector<torch::nn::Linear> layers;
};

struct Ran {
  Plan plan;
  Profile profile;
  std::vector<std::vector<std::size_t>> issued;  // by step
};

Ran run_engine(const std::string& strategy, unsigned seed) {
  Ran ran;
  const TestServers servers(strategy, 2, 0);
  const auto errors = run_rank_threads(2, [&](Communicator& comm) {
    torch::manual_seed(seed);
    RandomNetwork model(seed);
    Trace trace({kFirst, kSteps});
    TuneOptions options;
    options.strategy = strategy;
    options.strategy_options.bucket_bytes = 1500;
    options.strategy_options.first_bucket_bytes = 300;
    options.strategy_options.partition_bytes = 900;
    options.strategy_options.credit_bytes = 2000;
    options.trace = &trace;
    const auto connection = servers.connect(comm.rank());
    if (connection) options.servers = &connection->push_pull();
    TunedEngine engine(model, comm, options);
    for (int64_t step = 0; step < kFirst + kSteps + 1; ++step) {
      engine.begin_step();
      engine.backward(model.loss(), 0.5);
      engine.finish_step(0.01);
    }
    engine.settle();
    if (connection) connection->stop();
    if (comm.rank() != 0) return;
    ran.plan = engine.plan();
    ran.profile = *engine.profile();
    std::vector<TraceEvent> transfers;
    for (const TraceEvent& event : trace.communication_events())
      if (event.kind == TraceKind::transfer) transfers.push_back(event);
    std::stable_sort(transfers.begin(), transfers.end(),
                     [](const TraceEvent& a, const TraceEvent& b) { return a.issued_ns < b.issued_ns; });
    ran.issued.resize(kSteps);
    for (const TraceEvent& event : transfers)
      if (event.step >= kFirst)
        ran.issued[static_cast<std::size_t>(event.step - kFirst)].push_back(static_cast<std::size_t>(event.index));
  });
  for (const std::string& error : errors) EXPECT_EQ(error, "");
  return ran;
}

class SimulatedOrder : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Strategies, SimulatedOrder, testing::ValuesIn(strategy_names()));

TEST_P(SimulatedOrder, IsTheEnginesOnRandomNetworks) {
  for (unsigned seed = 1; seed <= 8; ++seed) {
    const Ran ran = run_engine(GetParam(), seed);
    Links links;
    links.all_reduce = fit_link_cost({{1000, 50e-6}, {100'000, 150e-6}});
    links.push_pull = links.all_reduce;
    const auto simulated = simulate_run(ran.plan, ran.profile, cluster_of_run(links, 2)).issued;
    EXPECT_EQ(simulated.size(), ran.plan.transfers.size());
    for (const auto& step : ran.issued) EXPECT_EQ(step, simulated) << "network " << seed;
  }
}

}  // namespace
}  // namespace tutti
