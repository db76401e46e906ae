#pragma once

#include <ATen/record_function.h>

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "engine/flat_space.h"

namespace tutti {

/// Tells when forward first reads each parameter, without a hook in the model: it looks at the inputs of every operator
/// that the calling thread runs while it is alive. The last one made on a thread counts. It may be made and destroyed
/// inside a backward pass, and destroyed on another thread: the calling thread's tidy_up() then completes that.
class ForwardWatch {
 public:
  ForwardWatch(const std::vector<FlatParameter>& parameters, std::function<void(std::size_t parameter)> first_use);
  ~ForwardWatch();
  ForwardWatch(const ForwardWatch&) = delete;
  ForwardWatch& operator=(const ForwardWatch&) = delete;

  /// Outside of backward passes, on the thread that computes: sees to it that operators are looked at where a watch is
  /// there, and only there.
  static void tidy_up();

  struct State;

 private:
  std::shared_ptr<State> state_;
};

/// While it lives, the thread is inside a backward pass. What is said to PyTorch's observers there is forgotten after
/// it.
class InsideBackward {
 public:
  InsideBackward();
  ~InsideBackward();
  InsideBackward(const InsideBackward&) = delete;
  InsideBackward& operator=(const InsideBackward&) = delete;

 private:
  bool before_;
};

}  // namespace tutti
