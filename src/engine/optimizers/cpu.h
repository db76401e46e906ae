#pragma once

#include "engine/optimizer.h"

namespace tutti {

// Long enough to pay for a thread's wake-up.
constexpr int64_t kGrain = 1 << 16;

/// As a number; 1 for none.
inline float scale_of(const torch::Tensor& gradient_scale) {
  return gradient_scale.defined() ? *gradient_scale.data_ptr<float>() : 1.0f;
}

// The names of the state's buffers.
std::vector<std::string> sgd_state(const OptimizerOptions& options);
std::vector<std::string> adam_state();

}  // namespace tutti
