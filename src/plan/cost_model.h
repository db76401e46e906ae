#pragma once

#include "tutti/links.h"
#include "tutti/plan.h"

namespace tutti {

struct PredictedStep {
  double synchronized_s = 0;  // from the start of backward until the last transfer is done
  double step_s = 0;          // from the start of backward until the end of the next forward
};

/// What a plan costs in steady state when messages pass one after the other: the model under which merging and ordering
/// are decided. Optimizer and contention are left out; reduce-scatter and all-gather cost half of an all-reduce each.
PredictedStep predict_step(const Plan& plan, const Profile& profile, const Links& links);

}  // namespace tutti
