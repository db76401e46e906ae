#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "engine/networks.h"
#include "support/rank_threads.h"
#include "support/test_servers.h"
#include "tutti/tuned_engine.h"

namespace tutti {

struct Setting {
  int ranks = 2;
  int steps = 20;
  std::string optimizer = "sgd";
  double clip_norm = 0;
  int accumulate = 1;
  std::string wire = "fp32";
  int servers = 0;  // for strategies that use them; 0: one beside each rank
};

template <typename Network>
std::vector<torch::Tensor> weights_after(const std::string& strategy, const Setting& setting) {
  std::vector<std::shared_ptr<Network>> models;
  for (int rank = 0; rank < setting.ranks; ++rank) {
    torch::manual_seed(9);
    models.push_back(std::make_shared<Network>());
  }
  std::vector<std::vector<torch::Tensor>> weights(static_cast<std::size_t>(setting.ranks));
  // `auto` gets all that strategies can ask for, and tries each for a few steps.
  const TestServers servers(strategy == kAutoStrategy ? "bsp-ps" : strategy, setting.ranks, setting.servers);
  const auto errors = run_rank_threads(setting.ranks, [&](Communicator& comm) {
    Network& model = *models[static_cast<std::size_t>(comm.rank())];
    TuneOptions options;
    options.strategy = strategy;
    options.auto_options = {100, 0, 0};
    options.optimizer.name = setting.optimizer;
    options.optimizer.momentum = 0.9;
    options.clip_norm = setting.clip_norm;
    options.wire = setting.wire;
    options.strategy_options.bucket_bytes = 300;
    options.strategy_options.first_bucket_bytes = 100;
    // A few partitions of the longest tensor.
    int64_t longest = 0;
    for (const torch::Tensor& parameter : model.parameters()) longest = std::max(longest, parameter.numel());
    options.strategy_options.partition_bytes = std::max<int64_t>(128, longest);
    options.strategy_options.credit_bytes = 2 * options.strategy_options.partition_bytes;
    const auto connection = servers.connect(comm.rank());
    if (connection) options.servers = &connection->push_pull();
    TunedEngine engine(model, comm, options);
    for (int step = 0; step < setting.steps; ++step) {
      engine.begin_step();
      for (int micro = 0; micro < setting.accumulate; ++micro) {
        const int64_t first = ((step * comm.size() + comm.rank()) * setting.accumulate + micro) * 4;
        engine.backward(model.loss(make_samples(first, 4)), 1.0 / (comm.size() * setting.accumulate),
                        micro + 1 == setting.accumulate);
      }
      engine.finish_step(0.05);
    }
    engine.settle();
    weights[static_cast<std::size_t>(comm.rank())] = copies(model);
    if (connection) connection->stop();
  });
  for (const std::string& error : errors) EXPECT_EQ(error, "");
  for (std::size_t rank = 1; rank < weights.size(); ++rank)
    for (std::size_t i = 0; i < weights[0].size(); ++i)
      EXPECT_TRUE(torch::equal(weights[rank][i], weights[0][i]))
          << strategy << ": rank " << rank << " differs from rank 0";
  return weights[0];
}

template <typename Network>
void expect_all_strategies_equal(const Setting& setting) {
  const auto expected = weights_after<Network>("bsp", setting);
  for (const std::string& strategy : strategy_names()) {
    const auto weights = weights_after<Network>(strategy, setting);
    ASSERT_EQ(weights.size(), expected.size());
    for (std::size_t i = 0; i < weights.size(); ++i)
      EXPECT_TRUE(torch::equal(weights[i], expected[i])) << strategy << " differs from bsp in parameter " << i << " ("
                                                         << setting.ranks << " ranks, " << setting.optimizer << ")";
  }
}

}  // namespace tutti
