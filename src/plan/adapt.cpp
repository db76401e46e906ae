#include "plan/adapt.h"

#include <fmt/format.h>

namespace tutti {

std::string adapt(Plan& plan, const PlanNeeds& needs) {
  if (plan.servers == 0) plan.node_ranks = needs.node_ranks;
  const char* const reason = needs.outer_optimizer      ? "an optimizer outside the engine"
                             : needs.clips              ? "clipping by the global norm"
                             : needs.scaled             ? "a scaled loss"
                             : needs.whole_tensors      ? "an optimizer that works on whole tensors"
                             : needs.has_new_parameters ? "a parameter that has had no gradient yet"
                                                        : nullptr;
  if (plan.barrier != Barrier::next_forward || reason == nullptr) return "";
  const bool was_sharded = plan.sharded_optimizer;
  plan.barrier = Barrier::optimizer_step;
  plan.sharded_optimizer = false;
  return fmt::format("{} needs all gradients before any update: the optimizer step waits for all transfers{}", reason,
                     was_sharded ? ", and every rank keeps the whole optimizer state" : "");
}

}  // namespace tutti
