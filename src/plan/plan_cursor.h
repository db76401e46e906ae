#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "tutti/plan.h"

namespace tutti {

/// Where one step stands in its plan: takes events, says which transfer may start. Engine and simulator both own one
/// and differ only in who feeds it. Not thread-safe; borrows the plan, which outlives it.
class PlanCursor {
 public:
  explicit PlanCursor(const Plan& plan);

  void begin_step();
  /// The gradient in slot `slot` is there. Repeating it within a step changes nothing.
  void gradient_ready(std::size_t slot);
  /// Backward is over: gradients that did not come count as ready (they are zero).
  void backward_done();
  /// The next transfer to start now, at most once each, or nothing until another event.
  std::optional<std::size_t> start_next();
  void transfer_done(std::size_t transfer);

  bool has_started_all() const { return next_ == plan_->transfers.size(); }
  bool is_backward_done() const { return backward_done_; }
  bool has_gradient(std::size_t slot) const { return ready_[slot]; }
  /// All transfers are done: the optimizer may step.
  bool is_step_synchronized() const { return done_count_ == plan_->transfers.size(); }
  /// All transfers of this slot are done: under Barrier::next_forward its layer may run.
  bool is_slot_synchronized(std::size_t slot) const { return unfinished_[slot] == 0; }

 private:
  bool may_start(std::size_t transfer) const;

  const Plan* plan_;
  std::vector<std::vector<std::size_t>> transfers_of_slot_;
  std::vector<SlotRange> slots_of_transfer_;
  std::vector<bool> ready_;              // by slot
  std::vector<std::size_t> missing_;     // by transfer: gradients not there yet
  std::vector<std::size_t> unfinished_;  // by slot: transfers not done yet
  std::vector<bool> done_;               // by transfer
  std::size_t next_ = 0;
  std::size_t done_count_ = 0;
  bool backward_done_ = false;
};

}  // namespace tutti
