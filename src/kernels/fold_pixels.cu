#include "kernels/fold_pixels.h"

#include "kernels/launch.h"
#include "kernels/packs.h"

namespace tutti {
namespace {

constexpr int V = 8;

/// A thread makes 8 channels of a pixel; blockIdx.x is a row of pixels.
__global__ void __launch_bounds__(kThreads)
    fold_pixels(const float* from, Pack<__nv_bfloat16, V>* to, int height, int width, int channels, int margin,
                int folded_height, int folded_width, int packs) {
  const int at = static_cast<int>(blockIdx.y * kThreads + threadIdx.x);
  if (at >= folded_width * packs) return;
  const int64_t image = blockIdx.x / folded_height;
  const int row = static_cast<int>(blockIdx.x % folded_height) - margin, column = at / packs - margin;
  float values[V] = {};
  if (row >= 0 && 2 * row < height && column >= 0 && 2 * column < width) {
#pragma unroll
    for (int i = 0; i < V; ++i) {
      const int channel = at % packs * V + i, place = channel / channels;
      if (place >= 4) continue;
      const int64_t pixel = (image * height + 2 * row + place / 2) * width + 2 * column + place % 2;
      values[i] = from[pixel * channels + channel % channels];
    }
  }
  to[int64_t{blockIdx.x} * folded_width * packs + at] = Pack<__nv_bfloat16, V>::of(values);
}

}  // namespace

cudaError_t fold_pixels_on_device(const FoldPixels& fold, const float* from, void* to, cudaStream_t stream) {
  if (fold.batch <= 0 || fold.height % 2 != 0 || fold.width % 2 != 0) return cudaErrorInvalidValue;
  const int64_t packs = fold.folded_channels() / V, in_row = fold.folded_width() * packs;
  const dim3 grid(static_cast<unsigned>(fold.batch * fold.folded_height()),
                  static_cast<unsigned>((in_row + kThreads - 1) / kThreads));
  fold_pixels<<<grid, kThreads, 0, stream>>>(
      from, static_cast<Pack<__nv_bfloat16, V>*>(to), static_cast<int>(fold.height), static_cast<int>(fold.width),
      static_cast<int>(fold.channels), fold.margin_before, static_cast<int>(fold.folded_height()),
      static_cast<int>(fold.folded_width()), static_cast<int>(packs));
  return cudaGetLastError();
}

}  // namespace tutti
