#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace tutti {

/// The largest value of each window of channels-last images, of each channel; as kernels/images.h has them.
struct MaxPool {
  int64_t batch = 0, height = 0, width = 0, channels = 0;
  bool is_bf16 = false;
  int window = 2, stride = 2, padding = 0;

  int64_t pooled_height() const { return (height + 2 * padding - window) / stride + 1; }
  int64_t pooled_width() const { return (width + 2 * padding - window) / stride + 1; }
};

/// Windows of 2 at every second pixel, and padded ones of 3; rows of pixels so long that a GPU's grid is too small for
/// them are left out.
inline bool has_max_pool_kernel(int64_t window, int64_t stride, int64_t padding, int64_t width, int64_t channels) {
  constexpr int64_t kLongestRow = int64_t{1} << 22;
  return stride == 2 && width * channels <= kLongestRow &&
         ((window == 2 && padding == 0) || (window == 3 && padding == 1));
}

/// `winners`: a byte for each element of y, saying where in its window the value was.
cudaError_t max_pool_on_device(const MaxPool& pool, const void* x, void* y, uint8_t* winners, cudaStream_t stream);
cudaError_t max_pool_gradient_on_device(const MaxPool& pool, const void* y_gradient, const uint8_t* winners,
                                        void* x_gradient, cudaStream_t stream);

}  // namespace tutti
