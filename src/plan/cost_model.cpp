#include "plan/cost_model.h"

#include <algorithm>
#include <numeric>

namespace tutti {
namespace {

double seconds_of(const Transfer& transfer, const Links& links) {
  const int64_t bytes = transfer.elements() * static_cast<int64_t>(sizeof(float));
  if (transfer.operation == Operation::push_pull) return links.push_pull.seconds(bytes);
  const double whole = links.all_reduce.seconds(bytes);
  return transfer.operation == Operation::all_reduce ? whole : whole / 2;
}

}  // namespace

PredictedStep predict_step(const Plan& plan, const Profile& profile, const Links& links) {
  // The profile's order is the slots' order. A slot is synchronized when the last transfer that touches it is done.
  std::vector<double> synchronized(plan.slots.size(), 0);
  double link_free = 0;
  for (const Transfer& transfer : plan.transfers) {
    const SlotRange slots = slots_of(plan, transfer);
    double start = transfer.starts == StartsWhen::backward_done ? profile.backward_s : 0;
    for (std::size_t slot = slots.first; slot < slots.end; ++slot)
      start = std::max(start, profile.gradients[slot].ready_s);
    link_free = std::max(start, link_free) + seconds_of(transfer, links);
    for (std::size_t slot = slots.first; slot < slots.end; ++slot)
      synchronized[slot] = std::max(synchronized[slot], link_free);
  }

  PredictedStep predicted;
  predicted.synchronized_s = link_free;
  double now = profile.backward_s, forward_at = 0;
  if (plan.barrier == Barrier::optimizer_step) {
    now = std::max(now, link_free);
  } else {
    std::vector<std::size_t> by_need(plan.slots.size());
    std::iota(by_need.begin(), by_need.end(), std::size_t{0});
    const auto needed = [&](std::size_t slot) { return profile.gradients[slot].needed_s; };
    std::stable_sort(by_need.begin(), by_need.end(),
                     [&](std::size_t a, std::size_t b) { return needed(a) < needed(b); });
    for (const std::size_t slot : by_need) {
      now = std::max(now + needed(slot) - forward_at, synchronized[slot]);
      forward_at = needed(slot);
    }
  }
  predicted.step_s = now + profile.forward_s - forward_at;
  return predicted;
}

}  // namespace tutti
