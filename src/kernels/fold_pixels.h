#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace tutti {

/// Channels-last images of even height and width, float, with few channels. Folded, every second pixel lies beside its
/// neighbours: pixel (i, j), channel (2 p + q) channels + c is what was at pixel (2 i + p, 2 j + q), channel c. Values
/// become bfloat16; around each image there are `margin_before` zeros before and `margin_after` behind.
struct FoldPixels {
  int64_t batch = 0, height = 0, width = 0, channels = 0;
  int margin_before = 0, margin_after = 0;

  int64_t folded_height() const { return height / 2 + margin_before + margin_after; }
  int64_t folded_width() const { return width / 2 + margin_before + margin_after; }
  /// A multiple of 8; the last ones are zeros.
  int64_t folded_channels() const { return (4 * channels + 7) / 8 * 8; }
};

cudaError_t fold_pixels_on_device(const FoldPixels& fold, const float* from, void* to, cudaStream_t stream);

}  // namespace tutti
