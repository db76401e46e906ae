#pragma once

#include <torch/types.h>

#include <cstddef>
#include <memory>

namespace tutti {

/// How time passes on the device that computes. A mark is placed in the device's queue; nobody waits for it. One that
/// is placed while a step is recorded means the last repetition of that step.
class DeviceClock {
 public:
  virtual ~DeviceClock() = default;
  virtual std::size_t mark() = 0;
  /// From one mark to another; waits for the device.
  virtual double seconds_between(std::size_t from, std::size_t to) = 0;
  virtual void forget_marks() = 0;
  /// Until the device has done what is queued.
  virtual void wait() = 0;
};

std::unique_ptr<DeviceClock> make_device_clock(const torch::Device& device);

std::unique_ptr<DeviceClock> make_cuda_clock();  // in cuda_clock.cpp

}  // namespace tutti
