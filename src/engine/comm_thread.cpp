#include "engine/comm_thread.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/files.h"

namespace tutti {

CommThread::CommThread(const Plan& plan, Communicator& comm, DeviceLink& link, Wire& wire, IssueLog& log,
                       std::function<void(std::size_t)> transfer_done, std::chrono::milliseconds timeout, Trace* trace)
    : plan_(plan),
      comm_(comm),
      link_(link),
      wire_(wire),
      log_(log),
      transfer_done_(std::move(transfer_done)),
      timeout_(timeout),
      trace_(trace),
      cursor_(plan) {
  for (const Transfer& transfer : plan.transfers) {
    std::size_t first = plan.slots.size(), last = 0;
    for (std::size_t slot = 0; slot < plan.slots.size(); ++slot) {
      const GradientSlot& s = plan.slots[slot];
      if (s.begin >= transfer.end || s.begin + s.elements <= transfer.begin) continue;
      first = std::min(first, slot);
      last = slot;
    }
    slots_of_transfer_.emplace_back(first, last);
  }
  thread_ = std::thread([this] { run(); });
}

CommThread::~CommThread() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
    if (current_ >= 0) comm_.abort("the step was abandoned");
  }
  changed_.notify_all();
  thread_.join();
}

void CommThread::begin_step(int64_t step) {
  const std::lock_guard<std::mutex> lock(mutex_);
  cursor_.begin_step();
  step_ = step;
  busy_s_ = 0;
  early_.clear();
  step_complete_ = plan_.transfers.empty();
  if (trace_ == nullptr) return;
  trace_->begin_communication(step);
  if (recording() == nullptr) return;
  slot_ready_ns_.assign(plan_.slots.size(), 0);
  transfer_done_ns_.assign(plan_.transfers.size(), 0);
  backward_done_ns_ = 0;
}

void CommThread::gradient_ready(std::size_t slot) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    cursor_.gradient_ready(slot);
    if (recording() != nullptr && slot_ready_ns_[slot] == 0) slot_ready_ns_[slot] = trace_now();
  }
  changed_.notify_one();
}

void CommThread::backward_done() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    cursor_.backward_done();
    if (recording() != nullptr) backward_done_ns_ = trace_now();
  }
  changed_.notify_one();
}

template <typename Condition>
double CommThread::wait(Condition condition) {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto is_over = [&] { return error_ != nullptr || condition(); };
  if (is_over()) return 0;
  const auto start = Clock::now();
  if (!progressed_.wait_for(lock, timeout_, is_over)) {
    const std::string where = context(current_ >= 0 ? static_cast<std::size_t>(current_) : 0);
    comm_.abort("no progress");
    error_ =
        std::make_exception_ptr(CommFailed("{} not finished after {} s.\nA peer has stopped or is slow: compare the "
                                           "last line of each rank, or raise --comm-timeout.",
                                           where, std::chrono::duration_cast<std::chrono::seconds>(timeout_).count()));
  }
  return seconds_since(start);
}

double CommThread::wait_for_step() {
  const double waited_s = wait([this] { return step_complete_; });
  const std::lock_guard<std::mutex> lock(mutex_);
  if (error_) std::rethrow_exception(error_);
  return waited_s;
}

double CommThread::wait_for_slot(std::size_t slot) {
  return wait([this, slot] { return step_complete_ || cursor_.is_slot_synchronized(slot); });
}

void CommThread::run() {
  link_.enter_comm_thread();
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    std::optional<std::size_t> next;
    const auto has_work = [&] {
      if (step_complete_ || error_) return false;
      if (cursor_.is_backward_done() && !early_.empty()) return true;
      next = cursor_.start_next();
      return next.has_value();
    };
    changed_.wait(lock, [&] { return stopping_ || has_work(); });
    if (stopping_) return;
    if (!next) {
      for (const std::size_t transfer : std::exchange(early_, {})) finish_transfer(transfer, lock);
      continue;
    }
    current_ = static_cast<std::ptrdiff_t>(*next);
    const bool after_backward = cursor_.is_backward_done();
    TraceBuffer* const traced = recording();
    const int64_t queued = traced != nullptr ? queued_ns(*next) : 0;
    lock.unlock();
    const auto start = Clock::now();
    const int64_t start_ns = traced != nullptr ? trace_now() : 0;
    const std::exception_ptr error = guarded(*next, [&] { run_transfer(*next, after_backward); });
    const double seconds = seconds_since(start);
    if (traced != nullptr && !error)
      traced->add(
          {TraceKind::transfer, static_cast<int>(*next), traced->step(), start_ns, trace_now(), queued, issued_ns_});
    lock.lock();
    busy_s_ += seconds;
    current_ = -1;
    if (error) {
      if (!error_) error_ = error;
      progressed_.notify_all();
    } else if (cursor_.is_backward_done()) {
      finish_transfer(*next, lock);
    } else {
      early_.push_back(*next);
    }
  }
}

void CommThread::finish_transfer(std::size_t index, std::unique_lock<std::mutex>& lock) {
  lock.unlock();
  const std::exception_ptr error = guarded(index, [&] {
    transfer_done_(index);
    link_.leave_for_join();
  });
  lock.lock();
  if (!error_) error_ = error;
  cursor_.transfer_done(index);
  if (recording() != nullptr) transfer_done_ns_[index] = trace_now();
  step_complete_ = cursor_.is_step_synchronized();
  progressed_.notify_all();
}

int64_t CommThread::queued_ns(std::size_t index) const {
  const Transfer& transfer = plan_.transfers[index];
  int64_t latest = transfer.starts == StartsWhen::backward_done ? backward_done_ns_ : 0;
  if (transfer.starts == StartsWhen::gradients_ready)
    for (std::size_t slot = slots_of_transfer_[index].first; slot <= slots_of_transfer_[index].second; ++slot)
      latest = std::max(latest, slot_ready_ns_[slot] != 0 ? slot_ready_ns_[slot] : backward_done_ns_);
  if (transfer.after >= 0) latest = std::max(latest, transfer_done_ns_[static_cast<std::size_t>(transfer.after)]);
  return latest;
}

template <typename Function>
std::exception_ptr CommThread::guarded(std::size_t index, Function function) const {
  try {
    function();
    return nullptr;
  } catch (const CommFailed& failure) {
    return std::make_exception_ptr(CommFailed("{}: {}", context(index), failure.what()));
  } catch (const std::exception& failure) {
    return std::make_exception_ptr(Error("{}: {}", context(index), failure.what()));
  }
}

void CommThread::run_transfer(std::size_t index, bool after_backward) {
  const Transfer& transfer = plan_.transfers[index];
  const auto [first, last] = slots_of_transfer_[index];
  const bool carries_values = transfer.operation == Operation::all_gather && plan_.sharded_optimizer;
  const FlatBuffer buffer = carries_values ? FlatBuffer::values : FlatBuffer::gradients;
  link_.wait_for_gradients(first, last, after_backward);
  // The gradients that an all_gather collects are where its reduce_scatter left them.
  const bool is_there = transfer.operation == Operation::all_gather && !carries_values;
  const Span span =
      is_there ? link_.host(buffer, transfer.begin, transfer.end) : link_.fetch(buffer, transfer.begin, transfer.end);
  log_.add(step_, transfer);
  // Parameters travel as they are, or ranks would end up with different ones.
  const Span message = carries_values ? span : wire_.pack(span);
  if (recording() != nullptr) issued_ns_ = trace_now();
  switch (transfer.operation) {
    case Operation::all_reduce:
      comm_.all_reduce_sum(message)->wait();
      break;
    case Operation::reduce_scatter:
      comm_.reduce_scatter_sum(message, shares(transfer, comm_.size()))->wait();
      break;
    case Operation::all_gather:
      comm_.all_gather(message, shares(transfer, comm_.size()))->wait();
      break;
  }
  if (!carries_values) wire_.unpack(message, span);
  link_.deliver(buffer, transfer.begin, transfer.end);
}

std::string CommThread::context(std::size_t index) const {
  const Transfer& transfer = plan_.transfers.at(index);
  return fmt::format("rank {}/{}, step {}: {} of transfer {} '{}' ({}, {})", comm_.rank(), comm_.size(), step_,
                     word(transfer.operation), index, transfer.name,
                     readable_bytes(static_cast<uint64_t>(transfer.elements()) * sizeof(float)), comm_.name());
}

}  // namespace tutti
