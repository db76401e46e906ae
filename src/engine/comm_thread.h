#pragma once

#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "comm/communicator.h"
#include "engine/device_link.h"
#include "engine/issue_log.h"
#include "plan/plan_cursor.h"

namespace tutti {

/// Runs a plan's transfers, one after the other in plan order, beside the computation: the one communication thread of a
/// rank. The computing threads report events; wait_for_step() is the only place where they wait.
/// Between wait_for_step() and the next begin_step() the thread sleeps and the communicator is free for others.
/// Borrows everything it is given.
class CommThread {
 public:
  struct StepTimes {
    double busy_s = 0;  // the thread was moving gradients or waiting for peers to do so
    double wait_s = 0;  // wait_for_step() waited
  };

  CommThread(const Plan& plan, Communicator& comm, DeviceLink& link, IssueLog& log, std::chrono::milliseconds timeout);
  ~CommThread();  // does not wait for peers: aborts what is under way
  CommThread(const CommThread&) = delete;
  CommThread& operator=(const CommThread&) = delete;

  void begin_step(int64_t step);
  void gradient_ready(std::size_t slot);
  void backward_done();
  /// Returns when every transfer of the step is done; throws what went wrong, with the transfer's name.
  StepTimes wait_for_step();

 private:
  void run();
  void run_transfer(std::size_t index, bool after_backward);
  std::string context(std::size_t index) const;

  const Plan& plan_;
  Communicator& comm_;
  DeviceLink& link_;
  IssueLog& log_;
  const std::chrono::milliseconds timeout_;
  std::vector<std::pair<std::size_t, std::size_t>> slots_of_transfer_;  // first and last
  int64_t step_ = 0;

  std::mutex mutex_;
  std::condition_variable changed_, synchronized_;
  PlanCursor cursor_;          // guarded by mutex_
  bool step_open_ = false;     // guarded by mutex_
  bool stopping_ = false;      // guarded by mutex_
  std::ptrdiff_t current_ = -1;  // transfer under way; guarded by mutex_
  double busy_s_ = 0;          // guarded by mutex_
  std::exception_ptr error_;   // guarded by mutex_
  std::thread thread_;         // last member: starts once the state it uses exists
};

}  // namespace tutti
