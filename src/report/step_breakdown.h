#pragma once

#include <optional>
#include <vector>

#include "base/trace.h"
#include "tutti/links.h"
#include "tutti/plan.h"
#include "tutti/records.h"

namespace tutti {

/// From all ranks' traces of steps that ran under `plan`. Links are what the run measured, if it did.
StepBreakdown break_down(const std::vector<RankTrace>& ranks, const Plan& plan, const std::optional<Links>& links);

}  // namespace tutti
