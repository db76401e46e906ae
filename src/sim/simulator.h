#pragma once

#include <string>
#include <vector>

#include "base/trace.h"
#include "sim/cluster.h"
#include "tutti/plan.h"

namespace tutti {

/// A training step in steady state, on a virtual clock.
struct SimulatedStep {
  double step_s = 0;
  double compute_s = 0;             // forward, backward and update without transfers beside them: of the slowest rank
  double exposed_s = 0;             // what transfers add
  double busy_s = 0;                // transfers under way
  double waited_s = 0;              // of what is exposed: computation stood still; the rest is slower computation
  std::vector<std::size_t> issued;  // transfers, in the order in which they were started
  std::vector<double> resource_s;   // by Resource: how long each was in use in the step
  int64_t events = 0;               // that the simulation took, all steps
  RankTrace trace;                  // of the step, where it was asked for
};

struct SimulationOptions {
  std::string optimizer = "sgd";  // or another of optimizers()
  bool traces = false;
};

/// Runs the plan through the same PlanCursor as the engine. Ranks that are alike are simulated once: `profiles` holds
/// one profile for each kind of rank (one for a cluster of equal nodes); a transfer starts when all kinds have issued
/// it.
SimulatedStep simulate(const Plan& plan, const std::vector<Profile>& profiles, const Cluster& cluster,
                       const Layout& layout, const SimulationOptions& options = {});

}  // namespace tutti
