#pragma once

#include <cuda_runtime_api.h>

#include "kernels/images.h"

namespace tutti {

/// Two images of as many pixels, put side by side channel-wise. Both numbers of channels are multiples of 8.
struct Join {
  int64_t rows = 0, first_channels = 0, second_channels = 0;
  bool is_bf16 = false;
};

/// to = first beside second + bias
cudaError_t join_on_device(const Join& join, const void* first, const void* second, const float* bias, void* to,
                           cudaStream_t stream);
/// From the gradient of that: the second's, which is copied out of it, and its sums over all pixels, the bias's.
cudaError_t split_on_device(const Join& join, const void* gradient, void* second_gradient, float* bias_gradient,
                            const ChannelScratch& scratch, cudaStream_t stream);

}  // namespace tutti
