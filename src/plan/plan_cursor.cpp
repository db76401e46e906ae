#include "plan/plan_cursor.h"

namespace tutti {

PlanCursor::PlanCursor(const Plan& plan)
    : plan_(&plan), transfers_of_slot_(plan.slots.size()), slots_of_transfer_(plan.transfers.size()) {
  for (std::size_t t = 0; t < plan.transfers.size(); ++t) {
    slots_of_transfer_[t] = slots_of(plan, plan.transfers[t]);
    for (std::size_t s = slots_of_transfer_[t].first; s < slots_of_transfer_[t].end; ++s)
      transfers_of_slot_[s].push_back(t);
  }
  begin_step();
}

void PlanCursor::begin_step() {
  ready_.assign(plan_->slots.size(), false);
  missing_.clear();
  for (const SlotRange& slots : slots_of_transfer_) missing_.push_back(slots.end - slots.first);
  unfinished_.clear();
  for (const auto& transfers : transfers_of_slot_) unfinished_.push_back(transfers.size());
  done_.assign(plan_->transfers.size(), false);
  next_ = 0;
  done_count_ = 0;
  backward_done_ = false;
}

void PlanCursor::gradient_ready(std::size_t slot) {
  if (ready_[slot]) return;
  ready_[slot] = true;
  for (const std::size_t transfer : transfers_of_slot_[slot]) --missing_[transfer];
}

void PlanCursor::backward_done() { backward_done_ = true; }

bool PlanCursor::may_start(std::size_t transfer) const {
  const int before = plan_->transfers[transfer].after;
  if (before >= 0 && !done_[static_cast<std::size_t>(before)]) return false;
  if (backward_done_) return true;
  return plan_->transfers[transfer].starts == StartsWhen::gradients_ready && missing_[transfer] == 0;
}

std::optional<std::size_t> PlanCursor::start_next() {
  // Plan order, even if a later transfer is ready first: collectives pair up by call order, so two ranks that
  // disagree would deadlock or add unrelated gradients.
  if (next_ == plan_->transfers.size() || !may_start(next_)) return std::nullopt;
  return next_++;
}

void PlanCursor::transfer_done(std::size_t transfer) {
  done_[transfer] = true;
  ++done_count_;
  for (std::size_t slot = slots_of_transfer_[transfer].first; slot < slots_of_transfer_[transfer].end; ++slot)
    --unfinished_[slot];
}

}  // namespace tutti
