#include "engine/comm_thread.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/files.h"

namespace tutti {

CommThread::CommThread(const Plan& plan, Communicator& comm, DeviceLink& link, IssueLog& log, std::chrono::milliseconds timeout)
    : plan_(plan), comm_(comm), link_(link), log_(log), timeout_(timeout), cursor_(plan) {
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
  step_open_ = true;
}

void CommThread::gradient_ready(std::size_t slot) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    cursor_.gradient_ready(slot);
  }
  changed_.notify_one();
}

void CommThread::backward_done() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    cursor_.backward_done();
  }
  changed_.notify_one();
}

CommThread::StepTimes CommThread::wait_for_step() {
  const auto start = Clock::now();
  std::unique_lock<std::mutex> lock(mutex_);
  const auto is_over = [this] { return error_ != nullptr || cursor_.is_step_synchronized(); };
  if (!synchronized_.wait_for(lock, timeout_, is_over)) {
    const std::string where = current_ >= 0 ? context(static_cast<std::size_t>(current_)) : context(0);
    comm_.abort("no progress");
    throw CommFailed("{} not finished after {} s.\nA peer has stopped or is slow: compare the last line of each rank, or "
                     "raise --comm-timeout.",
                     where, std::chrono::duration_cast<std::chrono::seconds>(timeout_).count());
  }
  if (error_) std::rethrow_exception(error_);
  step_open_ = false;
  return {busy_s_, seconds_since(start)};
}

void CommThread::run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    std::optional<std::size_t> next;
    changed_.wait(lock, [&] { return stopping_ || (step_open_ && !error_ && (next = cursor_.start_next())); });
    if (stopping_) return;
    current_ = static_cast<std::ptrdiff_t>(*next);
    const bool after_backward = cursor_.is_backward_done();
    lock.unlock();
    const auto start = Clock::now();
    std::exception_ptr error;
    try {
      run_transfer(*next, after_backward);
    } catch (const CommFailed& failure) {
      error = std::make_exception_ptr(CommFailed("{}: {}", context(*next), failure.what()));
    } catch (const std::exception& failure) {
      error = std::make_exception_ptr(Error("{}: {}", context(*next), failure.what()));
    }
    lock.lock();
    busy_s_ += seconds_since(start);
    current_ = -1;
    error_ = error;
    cursor_.transfer_done(*next);
    if (error_ || cursor_.is_step_synchronized()) synchronized_.notify_all();
  }
}

void CommThread::run_transfer(std::size_t index, bool after_backward) {
  const Transfer& transfer = plan_.transfers[index];
  const auto [first, last] = slots_of_transfer_[index];
  const Span span = link_.fetch(transfer, first, last, after_backward);
  log_.add(step_, transfer);
  comm_.all_reduce_sum(span)->wait();
  link_.deliver(transfer);
}

std::string CommThread::context(std::size_t index) const {
  const Transfer& transfer = plan_.transfers.at(index);
  return fmt::format("rank {}/{}, step {}: all_reduce of transfer {} '{}' ({}, {})", comm_.rank(), comm_.size(), step_, index,
                     transfer.name, readable_bytes(static_cast<uint64_t>(transfer.elements()) * sizeof(float)), comm_.name());
}

}  // namespace tutti
