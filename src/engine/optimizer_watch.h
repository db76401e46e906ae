#pragma once

#include <ATen/record_function.h>

#include <cstdint>
#include <functional>

namespace tutti {

/// Tells how long each step of an optimizer of PyTorch's took, in nanoseconds of the steady clock, while it is alive.
/// Python's optimizers announce their steps to profilers; C++'s do not. One at a time in a process counts.
class OptimizerWatch {
 public:
  explicit OptimizerWatch(std::function<void(int64_t begin_ns, int64_t end_ns)> step);
  ~OptimizerWatch();
  OptimizerWatch(const OptimizerWatch&) = delete;
  OptimizerWatch& operator=(const OptimizerWatch&) = delete;

 private:
  at::CallbackHandle handle_;
};

}  // namespace tutti
