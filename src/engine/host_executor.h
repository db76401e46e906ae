#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/trace.h"
#include "comm/ps/push_pull.h"
#include "engine/device_link.h"
#include "engine/executor.h"
#include "engine/issue_log.h"
#include "engine/wire.h"
#include "plan/pending_updates.h"
#include "plan/plan_cursor.h"
#include "tutti/communicator.h"

namespace tutti {

/// The one communication thread of a rank: transfers start and complete in plan order, as many at once as the plan
/// allows. Borrows everything it is given.
class HostExecutor : public PlanExecutor {
 public:
  /// `update` is called for every piece of a transfer that updates parameters (see Engine), after backward, which still
  /// reads what it changes, and before anybody is told that the transfer is done: on this thread when it has nothing to
  /// carry, or on one that waits here. `servers` is null where the plan has no push_pull; `trace` may be null.
  using Update = std::function<void(const UpdatePiece& piece, TraceBuffer* recording)>;
  HostExecutor(const Plan& plan, Communicator& comm, PushPull* servers, DeviceLink& link, Wire& wire, IssueLog& log,
               Update update, Trace* trace = nullptr);
  ~HostExecutor() override;
  HostExecutor(const HostExecutor&) = delete;
  HostExecutor& operator=(const HostExecutor&) = delete;

  void begin_step(int64_t step) override;
  void gradient_ready(std::size_t slot) override;
  void backward_done() override;
  void wait_for_backward() override { link_.wait_for_backward(); }
  double wait_for_step() override;
  double wait_for_slot(std::size_t slot) override;
  double busy_s() const override { return busy_s_; }

  /// Like begin_step() and gradient_ready() for these slots, where a repeated graph tells the link about them: see
  /// DeviceLink::gradient_queued().
  void begin_repeated_step(int64_t step, const std::vector<std::size_t>& slots);

 private:
  /// A transfer that was started.
  struct UnderWay {
    std::size_t transfer = 0;
    FlatBuffer buffer = FlatBuffer::gradients;
    Span gradients, message;  // as computed, and as it travels
    std::unique_ptr<Work> work;
    int64_t queued_ns = 0, start_ns = 0, issued_ns = 0;  // while a step is recorded
  };

  void run();
  void reset(int64_t step);
  void start(UnderWay& transfer, bool after_backward);
  void complete(UnderWay& transfer);
  bool must_complete() const;
  void abort(const char* reason) noexcept;
  bool may_update() const { return cursor_.is_backward_done() && !pending_.empty(); }
  void update_next(TraceBuffer* recording, std::unique_lock<std::mutex>& lock);
  void transfer_done(std::size_t index);
  /// Runs it; what it throws, with the transfer's name.
  template <typename Function>
  std::exception_ptr guarded(std::size_t index, Function function) const;
  std::string context(std::size_t index) const;
  TraceBuffer* recording() const { return trace_ != nullptr ? trace_->communication() : nullptr; }
  int64_t queued_ns(std::size_t transfer) const;
  /// Meanwhile updates what is pending; only the rest counts as waiting.
  template <typename Condition>
  double wait(Condition condition);

  const Plan& plan_;
  Communicator& comm_;
  PushPull* const servers_;
  DeviceLink& link_;
  Wire& wire_;
  IssueLog& log_;
  const Update update_;
  Trace* const trace_;
  std::vector<SlotRange> slots_of_transfer_;
  int64_t step_ = 0;

  std::mutex mutex_;
  std::condition_variable changed_, progressed_;
  PlanCursor cursor_;               // guarded by mutex_
  bool step_complete_ = true;       // guarded by mutex_
  bool stopping_ = false;           // guarded by mutex_
  std::deque<UnderWay> under_way_;  // changed by the thread alone, under mutex_
  std::ptrdiff_t current_ = -1;     // transfer that the thread is busy with; guarded by mutex_
  PendingUpdates pending_;          // guarded by mutex_
  double busy_s_ = 0;               // written by the thread while a step is open
  Clock::time_point busy_since_{};  // the thread's own
  int64_t last_end_ns_ = 0;         // of a recorded transfer; the thread's own
  // While a step is recorded; guarded by mutex_. 0: not yet.
  std::vector<int64_t> slot_ready_ns_, transfer_done_ns_;
  int64_t backward_done_ns_ = 0;
  std::exception_ptr error_;  // guarded by mutex_
  std::thread thread_;        // last member: starts once the state it uses exists
};

}  // namespace tutti
