#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/images.h"

namespace tutti {

// Batch normalization of images with more than one row. Optionally a residual is added behind it, and relu follows.
// Sums, statistics, weights and their gradients are float. Results are the same bits each time, on every kind of GPU.

/// How relu's share of the gradient is known in backward.
enum class NormRelu {
  none,       // there is no relu
  of_value,   // from x, which needs no memory: where nothing is added in between
  from_mask,  // from what forward has written to `mask`, norm_mask_bytes() bytes
};
int64_t norm_mask_bytes(const ImageShape& shape);

struct NormForward {
  ImageShape shape;
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
  ChannelScratch scratch;
};

struct NormBackward {
  ImageShape shape;
  const void* x = nullptr;
  const void* y_gradient = nullptr;
  const void* y_gradient2 = nullptr;  // to be added to the first; null: none
  int64_t y_gradient2_row = 0;        // elements from one of its rows to the next: it may be a part of something wider
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
  ChannelScratch scratch;
};

/// Each queues two kernels: one for sums over each channel, one that goes over the elements.
cudaError_t norm_forward_on_device(const NormForward& call, cudaStream_t stream);
cudaError_t norm_backward_on_device(const NormBackward& call, cudaStream_t stream);

}  // namespace tutti
