#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/planner.h"
#include "tutti/strategy.h"

namespace tutti {

/// What our engine itself costs, apart from messages and computation.
Software engine_software();

/// The ranks of a run as a cluster: messages cost what the run measured.
Cluster cluster_of_run(const Links& links, int ranks, const Software& software = engine_software());

/// One plan of a run, simulated as our engine runs it.
SimulatedStep simulate_run(const Plan& plan, const Profile& profile, const Cluster& cluster);

/// Which strategies may be chosen, and what the engine then changes about their plans.
struct CandidateRules {
  std::function<bool(const Strategy&)> allows;
  std::function<void(Plan&)> adapt;  // may be null
  int servers = 0;
};

/// One strategy with the sizes given, simulated.
PlannedStrategy plan_run(const Strategy& strategy, const StrategyOptions& options, const Profile& profile,
                         const Links& links, int ranks, const CandidateRules& rules);

/// Every strategy that is allowed, each with the sizes that the simulation finds best.
std::vector<PlannedStrategy> plan_run(const Profile& profile, const Links& links, int ranks,
                                      const CandidateRules& rules);

/// Of these the `most` fastest and bsp, the fastest first. Of plans that send the same messages, one.
std::vector<PlannedStrategy> find_candidates(const Profile& profile, const Links& links, int ranks,
                                             const CandidateRules& rules, std::size_t most);

}  // namespace tutti
