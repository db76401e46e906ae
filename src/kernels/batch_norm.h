#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace tutti {

// Batch normalization of images that lie channels-last in device memory: a row for each pixel, channels side by side.
// Optionally a residual is added behind it, and relu follows. Values are float or bfloat16; sums, statistics, weights
// and their gradients are float. Results are the same bits each time, on every kind of GPU.

struct NormShape {
  int64_t rows = 0;  // more than one
  int64_t channels = 0;
  bool is_bf16 = false;
};

/// Memory to work with. A call uses it until its kernels have run.
struct NormScratch {
  float* sums = nullptr;         // norm_sums() of them
  unsigned* counters = nullptr;  // kNormCounters of them, zeroes, which are zeroes again afterwards
};
constexpr int64_t kNormCounters = 1024;
constexpr int64_t kMostNormChannels = 32768;
int64_t norm_sums(const NormShape& shape);

/// How relu's share of the gradient is known in backward.
enum class NormRelu {
  none,       // there is no relu
  of_value,   // from x, which needs no memory: where nothing is added in between
  from_mask,  // from what forward has written to `mask`, norm_mask_bytes() bytes
};
int64_t norm_mask_bytes(const NormShape& shape);

/// All of `values` start at multiples of 16 bytes.
struct NormForward {
  NormShape shape;
  const void* x = nullptr;
  const void* residual = nullptr;  // null: none
  void* y = nullptr;
  bool has_relu = false;
  uint8_t* mask = nullptr;  // null: not wanted
  const float* weight = nullptr;
  const float* bias = nullptr;
  float* running_mean = nullptr;  // null: not kept
  float* running_variance = nullptr;
  double momentum = 0;
  double epsilon = 0;
  float* mean = nullptr;  // for backward
  float* inverse_deviation = nullptr;
  NormScratch scratch;
};

struct NormBackward {
  NormShape shape;
  const void* x = nullptr;
  const void* y_gradient = nullptr;
  const void* y_gradient2 = nullptr;  // to be added to the first; null: none
  NormRelu relu = NormRelu::none;
  const uint8_t* mask = nullptr;
  const float* weight = nullptr;
  const float* bias = nullptr;
  const float* mean = nullptr;
  const float* inverse_deviation = nullptr;
  void* x_gradient = nullptr;
  void* residual_gradient = nullptr;  // null: not wanted
  float* weight_gradient = nullptr;
  float* bias_gradient = nullptr;
  NormScratch scratch;
};

/// Each queues two kernels: one for sums over each channel, one that goes over the elements.
cudaError_t norm_forward_on_device(const NormForward& call, cudaStream_t stream);
cudaError_t norm_backward_on_device(const NormBackward& call, cudaStream_t stream);

}  // namespace tutti
