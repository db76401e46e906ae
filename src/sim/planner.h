#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/cluster.h"
#include "sim/simulator.h"
#include "tutti/strategy.h"

namespace tutti {

/// What is to be trained where.
struct Workload {
  std::string model;   // for people
  ModelShape shape;    // what profiles are computed from
  Profile measured;    // taken instead, where it has gradients
  double batch = 64;   // samples per rank and micro-batch
  int accumulate = 1;  // micro-batches per step
  std::string optimizer = "sgd";
};

/// A strategy with its sizes, on a number of ranks, simulated.
struct PlannedStrategy {
  std::string name;
  StrategyOptions options;
  std::string settings;  // "--bucket-mb 25"; "" where there are none
  Plan plan;
  SimulatedStep step;
  double samples_per_s = 0;
  double efficiency = 0;  // samples/s over that many times a single rank's
};

/// Simulates one strategy with the sizes given.
PlannedStrategy plan_strategy(const Workload& workload, const Cluster& cluster, int ranks, const std::string& strategy,
                              const StrategyOptions& options, bool traces = false);

/// Each strategy with the sizes that the simulation finds best. `servers`: as many as nodes where 0.
std::vector<PlannedStrategy> plan_all(const Workload& workload, const Cluster& cluster, int ranks, int servers = 0);

/// The fastest; one that needs servers has to be faster by more than the simulation can tell apart.
const PlannedStrategy& best_of(const std::vector<PlannedStrategy>& planned);
/// The same where some were measured, in seconds: a measured step counts, and of the others the predicted one times
/// what measured ones took longer than predicted (their median).
const PlannedStrategy& best_of(const std::vector<PlannedStrategy>& planned,
                               const std::vector<std::optional<double>>& measured_s);
/// What is to be read under a table that marks it.
constexpr const char* kBestMeans =
    "*: the best; strategies that need servers count only where they gain more than 2 %.\n";

/// Samples per second of a single rank.
double single_rate(const Workload& workload, const Cluster& cluster);

/// The fewest servers with which push-pull is within 2 % of what twice as many nodes' worth would give.
int servers_needed(const Workload& workload, const Cluster& cluster, int ranks);

/// The smallest power of two of ranks at which the best strategy's efficiency is under `bound`; 0: none up to all.
int size_below(const Workload& workload, const Cluster& cluster, double bound, int servers = 0);

/// What to ask for, and what the step then waits for, in words.
std::string reasons(const PlannedStrategy& best, const Cluster& cluster, int ranks);

struct WhatIf {
  std::string change;
  PlannedStrategy best;
  double samples_per_s = 0;
};
std::vector<WhatIf> what_ifs(const Workload& workload, const Cluster& cluster, int ranks, int servers = 0);

}  // namespace tutti
