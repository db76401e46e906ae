#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/optimizer_math.h"

namespace tutti {

/// A run of elements to update, in device memory. Nothing here waits for the device, and nothing that changes from step
/// to step is among the arguments.
struct UpdateRun {
  float* values = nullptr;
  const float* gradients = nullptr;
  float* state[2] = {nullptr, nullptr};  // sgd: its velocity, or none; adam: mean and mean square
  int64_t count = 0;
  const StepScalars* scalars = nullptr;
  int64_t lag = 0;                        // these elements' step number is scalars->step - lag
  const float* gradient_scale = nullptr;  // null: 1
};

/// Each queues one kernel, or none for an empty run.
cudaError_t update_on_device(const SgdRule& rule, const UpdateRun& run, cudaStream_t stream);
cudaError_t update_on_device(const AdamRule& rule, const UpdateRun& run, cudaStream_t stream);

/// LAMB on a run that is one tensor, with two kernels. `sums` are kLambSums numbers in device memory to work with.
constexpr int64_t kLambSums = 2 * 256;
cudaError_t update_on_device(const LambRule& rule, const UpdateRun& run, double* sums, cudaStream_t stream);

/// Writes `scalars` to device memory, in the stream's order, with no host memory that would have to stay.
cudaError_t set_on_device(StepScalars* where, StepScalars scalars, cudaStream_t stream);

}  // namespace tutti
