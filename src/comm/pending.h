#pragma once

#include <atomic>
#include <string>

#include "tutti/communicator.h"

namespace tutti {

/// Something under way: completed or failed by the thread that makes progress, watched by the caller.
class Pending {
 public:
  virtual ~Pending() = default;

  bool is_finished() const { return state_.load(std::memory_order_acquire) != State::pending; }
  void succeed() { state_.store(State::done, std::memory_order_release); }
  /// The group is broken or a peer is gone: CommFailed.
  void fail(const std::string& text) { fail(text, State::comm_failed); }
  /// This operation alone was wrong: Error.
  void fail_alone(const std::string& text) { fail(text, State::wrong); }

  /// Only once finished.
  void rethrow() const {
    const State state = state_.load(std::memory_order_acquire);
    if (state == State::comm_failed) throw CommFailed(error_);
    if (state == State::wrong) throw Error(error_);
  }

 private:
  enum class State { pending, done, comm_failed, wrong };

  void fail(const std::string& text, State state) {
    if (is_finished()) return;
    error_ = text;
    state_.store(state, std::memory_order_release);
  }

  std::string error_;  // written before state_
  std::atomic<State> state_{State::pending};
};

}  // namespace tutti
