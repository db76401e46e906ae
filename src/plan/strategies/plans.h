#pragma once

#include "tutti/strategy.h"

namespace tutti {

// The strategies' plans, for those that build on each other and for their tests; others use find_strategy().
Plan make_wfbp_plan(const Profile& profile, const Links& links, int ranks, const StrategyOptions& options);
Plan make_buckets_plan(const Profile& profile, const Links& links, int ranks, const StrategyOptions& options);
Plan make_fusion_plan(const Profile& profile, const Links& links, int ranks, const StrategyOptions& options);
Plan make_mgwfbp_plan(const Profile& profile, const Links& links, int ranks, const StrategyOptions& options);
Plan make_bytescheduler_plan(const Profile& profile, const Links& links, int ranks, const StrategyOptions& options);
Plan make_dear_plan(const Profile& profile, const Links& links, int ranks, const StrategyOptions& options);
Plan make_bsp_ps_plan(const Profile& profile, const Links& links, int ranks, const StrategyOptions& options);
Plan make_wfbp_ps_plan(const Profile& profile, const Links& links, int ranks, const StrategyOptions& options);
Plan make_bytescheduler_ps_plan(const Profile& profile, const Links& links, int ranks, const StrategyOptions& options);

}  // namespace tutti
