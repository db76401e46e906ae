#pragma once

#include <string>

#include "sim/model_shape.h"
#include "tutti/profile.h"

namespace tutti {

/// What a processor does in a second, as far as a training step asks.
struct Device {
  std::string name;
  double flop_per_s = 0;                // the peak, in the precision that is trained in
  double memory_bytes_per_s = 0;        // the peak
  double efficiency = 0.5;              // of the first peak that large matrix products reach
  double convolution_efficiency = 0.4;  // and convolutions
  double memory_efficiency = 0.75;
  double launch_s = 5e-6;    // to start one kernel
  double value_bytes = 4;    // of an activation
  double slowest_batch = 4;  // samples below which matrix products no longer fill the device
};

/// The profile of a training step of `batch` samples, computed from operations and values moved. Gradients come in the
/// reverse of forward; backward takes twice as long as forward, layer by layer.
Profile compute_profile(const ModelShape& shape, const Device& device, double batch);

/// The same profile on a device that is as much slower as makes forward and backward last `seconds` together.
Profile scaled_to(Profile profile, double seconds);

}  // namespace tutti
