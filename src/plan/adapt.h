#pragma once

#include <string>
#include <vector>

#include "tutti/plan.h"

namespace tutti {

/// What a run needs of its plan, whatever the strategy.
struct PlanNeeds {
  std::vector<int> node_ranks = {};  // of a communicator that works inside nodes first
  // Reasons to have all gradients before any parameter is updated:
  bool clips = false;               // gradients are clipped by their global norm
  bool has_new_parameters = false;  // some parameter has had no gradient yet: who updates it is agreed on at the end
  bool whole_tensors = false;       // the optimizer works on whole tensors, and slices end anywhere
  bool outer_optimizer = false;     // the caller updates, with an optimizer of its own
  bool scaled = false;              // a step whose gradients are not all finite is left out
};

/// Changes the plan into one that meets them. Transfers still overlap backward. Returns what a person should know about
/// it, "" when nothing.
std::string adapt(Plan& plan, const PlanNeeds& needs);

}  // namespace tutti
