#include "engine/host_executor.h"

#include "base/clock.h"
#include "base/files.h"
#include "status/status_board.h"
#include "tutti/error.h"

namespace tutti {

HostExecutor::HostExecutor(const Plan& plan, Communicator& comm, PushPull* servers, DeviceLink& link, Wire& wire,
                           IssueLog& log, Update update, Trace* trace)
    : plan_(plan),
      comm_(comm),
      servers_(servers),
      link_(link),
      wire_(wire),
      log_(log),
      update_(std::move(update)),
      trace_(trace),
      cursor_(plan),
      // A GPU only queues them: the fewer, the better.
      pending_(plan, link.updates_on_host() ? PendingUpdates::kPiece : plan.elements) {
  std::vector<std::string> names;
  for (const Transfer& transfer : plan.transfers) {
    slots_of_transfer_.push_back(slots_of(plan, transfer));
    names.push_back(fmt::format("transfer {} '{}'", names.size(), transfer.name));
  }
  StatusBoard::get().name_transfers(std::move(names));
  thread_ = std::thread([this] { run(); });
}

HostExecutor::~HostExecutor() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
    if (current_ >= 0 || !under_way_.empty()) abort("the step was abandoned");
  }
  changed_.notify_all();
  thread_.join();
}

void HostExecutor::begin_step(int64_t step) {
  const std::lock_guard<std::mutex> lock(mutex_);
  reset(step);
}

void HostExecutor::begin_repeated_step(int64_t step, const std::vector<std::size_t>& slots) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    reset(step);
    for (const std::size_t slot : slots) cursor_.gradient_ready(slot);
  }
  changed_.notify_one();
}

void HostExecutor::reset(int64_t step) {
  cursor_.begin_step();
  step_ = step;
  busy_s_ = 0;
  pending_.clear();
  step_complete_ = plan_.transfers.empty();
  if (servers_ != nullptr && plan_.servers > 0) servers_->begin_step();
  if (trace_ == nullptr) return;
  trace_->begin_communication(step);
  if (recording() == nullptr) return;
  slot_ready_ns_.assign(plan_.slots.size(), 0);
  transfer_done_ns_.assign(plan_.transfers.size(), 0);
  backward_done_ns_ = 0;
}

void HostExecutor::gradient_ready(std::size_t slot) {
  link_.gradient_queued(slot);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    cursor_.gradient_ready(slot);
    if (recording() != nullptr && slot_ready_ns_[slot] == 0) slot_ready_ns_[slot] = trace_now();
  }
  changed_.notify_one();
}

void HostExecutor::backward_done() {
  link_.backward_queued();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    cursor_.backward_done();
    if (recording() != nullptr) backward_done_ns_ = trace_now();
  }
  changed_.notify_one();
}

template <typename Condition>
double HostExecutor::wait(Condition condition) {
  std::unique_lock<std::mutex> lock(mutex_);
  TraceBuffer* const traced = trace_ != nullptr ? trace_->compute() : nullptr;
  const auto is_over = [&] { return error_ != nullptr || condition(); };
  const auto can_help = [&] { return link_.updates_on_host() && may_update(); };
  double waited_s = 0;
  while (!is_over()) {
    if (can_help()) {
      update_next(traced, lock);
      continue;
    }
    const TraceSpan span(traced, TraceKind::comm_wait);
    const auto start = Clock::now();
    // The transport knows whether it gets any further, and gives up if not.
    progressed_.wait(lock, [&] { return is_over() || can_help(); });
    waited_s += seconds_since(start);
  }
  return waited_s;
}

double HostExecutor::wait_for_step() {
  const double waited_s = wait([this] { return step_complete_; });
  link_.join();
  const std::lock_guard<std::mutex> lock(mutex_);
  if (error_) std::rethrow_exception(error_);
  return waited_s;
}

double HostExecutor::wait_for_slot(std::size_t slot) {
  const double waited_s = wait([this, slot] { return step_complete_ || cursor_.is_slot_synchronized(slot); });
  link_.join();
  return waited_s;
}

void HostExecutor::abort(const char* reason) noexcept {
  comm_.abort(reason);
  if (servers_ != nullptr) servers_->abort(reason);
}

bool HostExecutor::must_complete() const {
  // Not when the oldest one happens to be through: ranks that share a node must start and complete in the same order.
  return !under_way_.empty() &&
         (static_cast<int>(under_way_.size()) >= plan_.max_in_flight || cursor_.has_started_all());
}

void HostExecutor::run() {
  link_.enter_comm_thread();
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    std::optional<std::size_t> next;
    bool updates = false;
    const auto has_work = [&] {
      if (step_complete_ || error_) return false;
      // On a GPU updates are only queued. On a processor they take time: what is still to be carried goes first.
      updates = may_update() && !link_.updates_on_host();
      if (updates || must_complete()) return true;
      next = cursor_.start_next();
      updates = !next && may_update();
      return next || updates;
    };
    changed_.wait(lock, [&] { return stopping_ || has_work(); });
    if (stopping_) return;
    if (updates) {
      update_next(recording(), lock);
      continue;
    }
    const bool starts = next.has_value();
    if (starts) {
      if (under_way_.empty()) busy_since_ = Clock::now();
      under_way_.emplace_back();
      under_way_.back().transfer = *next;
      if (recording() != nullptr) under_way_.back().queued_ns = queued_ns(*next);
    }
    UnderWay& transfer = starts ? under_way_.back() : under_way_.front();
    const std::size_t index = transfer.transfer;
    current_ = static_cast<std::ptrdiff_t>(index);
    StatusBoard::get().transfer(current_);
    const bool after_backward = cursor_.is_backward_done();
    lock.unlock();
    const std::exception_ptr error = guarded(index, [&] {
      if (starts)
        start(transfer, after_backward);
      else
        complete(transfer);
    });
    lock.lock();
    current_ = -1;
    StatusBoard::get().transfer(-1);
    if (error) {
      if (!error_) error_ = error;
      under_way_.clear();
      progressed_.notify_all();
      continue;
    }
    if (starts) continue;
    under_way_.pop_front();
    if (under_way_.empty()) busy_s_ += seconds_since(busy_since_);
    if (updates_parameters(plan_, plan_.transfers[index]))
      pending_.add(index);
    else
      transfer_done(index);
    progressed_.notify_all();
  }
}

void HostExecutor::update_next(TraceBuffer* recording, std::unique_lock<std::mutex>& lock) {
  const UpdatePiece piece = link_.updates_on_host() ? pending_.take_most_urgent() : pending_.take_oldest();
  lock.unlock();
  const std::exception_ptr error = guarded(piece.transfer, [&] {
    update_(piece, recording);
    link_.record_delivered();
  });
  lock.lock();
  if (!error_) error_ = error;
  if (pending_.done(piece)) {
    transfer_done(piece.transfer);
    changed_.notify_one();  // an all_gather may wait for it
  }
  progressed_.notify_all();
}

void HostExecutor::transfer_done(std::size_t index) {
  cursor_.transfer_done(index);
  if (!transfer_done_ns_.empty()) transfer_done_ns_[index] = trace_now();
  step_complete_ = cursor_.is_step_synchronized();
}

int64_t HostExecutor::queued_ns(std::size_t index) const {
  const Transfer& transfer = plan_.transfers[index];
  int64_t latest = transfer.starts == StartsWhen::backward_done ? backward_done_ns_ : 0;
  if (transfer.starts == StartsWhen::gradients_ready)
    for (std::size_t slot = slots_of_transfer_[index].first; slot < slots_of_transfer_[index].end; ++slot)
      latest = std::max(latest, slot_ready_ns_[slot] != 0 ? slot_ready_ns_[slot] : backward_done_ns_);
  if (transfer.after >= 0) latest = std::max(latest, transfer_done_ns_[static_cast<std::size_t>(transfer.after)]);
  return latest;
}

template <typename Function>
std::exception_ptr HostExecutor::guarded(std::size_t index, Function function) const {
  try {
    function();
    return nullptr;
  } catch (const CommFailed& failure) {
    return std::make_exception_ptr(CommFailed("{}: {}", context(index), failure.what()));
  } catch (const std::exception& failure) {
    return std::make_exception_ptr(Error("{}: {}", context(index), failure.what()));
  }
}

void HostExecutor::start(UnderWay& under_way, bool after_backward) {
  const Transfer& transfer = plan_.transfers[under_way.transfer];
  if (recording() != nullptr) under_way.start_ns = trace_now();
  const bool carries_values = carries_parameters(plan_, transfer);
  under_way.buffer = carries_values ? FlatBuffer::values : FlatBuffer::gradients;
  link_.wait_for_gradients(slots_of_transfer_[under_way.transfer], after_backward);
  // The gradients that an all_gather collects are where its reduce_scatter left them.
  const bool is_there = transfer.operation == Operation::all_gather && !carries_values;
  under_way.gradients = is_there ? link_.host(under_way.buffer, transfer.begin, transfer.end)
                                 : link_.fetch(under_way.buffer, transfer.begin, transfer.end);
  log_.add(step_, transfer);
  // Parameters travel as they are, or ranks would end up with different ones.
  const Span message = carries_values ? under_way.gradients : wire_.pack(under_way.gradients, transfer.begin);
  under_way.message = message;
  if (recording() != nullptr) under_way.issued_ns = trace_now();
  under_way.work = transfer.operation == Operation::push_pull ? servers_->start(under_way.transfer, message)
                                                              : wire_.carry(transfer, message, comm_);
}

void HostExecutor::complete(UnderWay& under_way) {
  const Transfer& transfer = plan_.transfers[under_way.transfer];
  under_way.work->wait();
  if (under_way.buffer == FlatBuffer::gradients) wire_.unpack(under_way.message, under_way.gradients, transfer.begin);
  link_.deliver(under_way.buffer, transfer.begin, transfer.end);
  link_.record_delivered();
  TraceBuffer* const traced = recording();
  if (traced == nullptr) return;
  // Of several under way, the time belongs to the oldest: what is recorded does not overlap.
  const int64_t begin = std::max(under_way.start_ns, last_end_ns_);
  last_end_ns_ = trace_now();
  traced->add({TraceKind::transfer, static_cast<int>(under_way.transfer), traced->step(), begin, last_end_ns_,
               under_way.queued_ns, std::max(under_way.issued_ns, begin)});
}

std::string HostExecutor::context(std::size_t index) const {
  const Transfer& transfer = plan_.transfers.at(index);
  return fmt::format("rank {}/{}, step {}: {} of transfer {} '{}' ({}, {})", comm_.rank(), comm_.size(), step_,
                     word(transfer.operation), index, transfer.name,
                     readable_bytes(static_cast<uint64_t>(transfer.elements()) * sizeof(float)), comm_.name());
}

}  // namespace tutti
