#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tutti/links.h"
#include "tutti/plan.h"

namespace tutti {

struct StrategyOptions {
  int64_t bucket_bytes = 25 << 20;       // `buckets`, `dear`, `zero1`: a group closes once it holds this much
  int64_t first_bucket_bytes = 1 << 20;  // `buckets`: the first one is small, so that communication starts early
  int64_t fusion_bytes = 128 << 20;      // `fusion`: most bytes in one message
  double fusion_cycle_s = 1e-3;          // `fusion`: how often what is ready is sent
  int64_t partition_bytes = 4 << 20;     // `bytescheduler`, `…-ps`: longest message; 0: search, with the credit
  /// `bytescheduler`, `…-ps`: bytes under way before the most urgent one must wait. 0: one partition of all-reduces,
  /// which run one after the other, so that more would only hold up what is urgent; four through servers.
  int64_t credit_bytes = 0;
  int servers = 0;  // parameter servers; 0: one beside each rank
};

/// A strategy is a pure function from what was measured to a Plan: no threads, no tensors.
struct Strategy {
  const char* name;
  const char* summary;  // one line for --help
  bool uses_links;      // whether the ranks' links have to be measured first
  bool uses_servers;    // whether its gradients travel through parameter servers
  Plan (*make_plan)(const Profile& profile, const Links& links, int ranks, const StrategyOptions& options);
};

const std::vector<Strategy>& strategies();
std::vector<std::string> strategy_names();
/// Throws UsageError for an unknown name.
const Strategy& find_strategy(const std::string& name);

/// Whether all that it ever plans are all_reduces.
bool sums_by_all_reduce(const Strategy& strategy);

// One file each in strategies/.
Plan make_bsp_plan(const Profile& profile, const Links& links, int ranks, const StrategyOptions& options);
Plan make_wfbp_plan(const Profile& profile, const Links& links, int ranks, const StrategyOptions& options);
Plan make_buckets_plan(const Profile& profile, const Links& links, int ranks, const StrategyOptions& options);
Plan make_fusion_plan(const Profile& profile, const Links& links, int ranks, const StrategyOptions& options);
Plan make_mgwfbp_plan(const Profile& profile, const Links& links, int ranks, const StrategyOptions& options);
Plan make_bytescheduler_plan(const Profile& profile, const Links& links, int ranks, const StrategyOptions& options);
Plan make_dear_plan(const Profile& profile, const Links& links, int ranks, const StrategyOptions& options);
Plan make_zero1_plan(const Profile& profile, const Links& links, int ranks, const StrategyOptions& options);
Plan make_bsp_ps_plan(const Profile& profile, const Links& links, int ranks, const StrategyOptions& options);
Plan make_wfbp_ps_plan(const Profile& profile, const Links& links, int ranks, const StrategyOptions& options);
Plan make_bytescheduler_ps_plan(const Profile& profile, const Links& links, int ranks, const StrategyOptions& options);

}  // namespace tutti
