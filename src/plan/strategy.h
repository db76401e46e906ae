#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/plan.h"

namespace tutti {

struct StrategyOptions {
  int64_t bucket_bytes = 25 << 20;       // `buckets`: a bucket closes once it holds this much
  int64_t first_bucket_bytes = 1 << 20;  // `buckets`: the first one is small, so that communication starts early
};

/// A strategy is a pure function from what was measured to a Plan: no threads, no tensors.
struct Strategy {
  const char* name;
  const char* summary;  // one line for --help
  Plan (*make_plan)(const Profile& profile, int ranks, const StrategyOptions& options);
};

const std::vector<Strategy>& strategies();
std::vector<std::string> strategy_names();
/// Throws UsageError for an unknown name.
const Strategy& find_strategy(const std::string& name);

// One file each in strategies/.
Plan make_bsp_plan(const Profile& profile, int ranks, const StrategyOptions& options);
Plan make_wfbp_plan(const Profile& profile, int ranks, const StrategyOptions& options);
Plan make_buckets_plan(const Profile& profile, int ranks, const StrategyOptions& options);

}  // namespace tutti
