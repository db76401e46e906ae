#include "model/ops/stem_conv.h"

#include "model/ops/image_kernels.h"

namespace tutti {
namespace {

// The kernel begins 3 pixels before a pixel with an even number. With a column of zeros in front it begins 4 before,
// and its 8 columns are 4 pairs: two before that pixel, its own, and one behind.
constexpr int64_t kKernel = 7, kStride = 2, kPadding = 3;
constexpr int64_t kPairs = (kKernel + 1) / 2;
constexpr int64_t kPairsBefore = (kPadding + 1) / 2;

}  // namespace

torch::Tensor stem_conv(const torch::Tensor& images, const torch::Tensor& weight) {
  const bool is_wanted = weight.size(2) == kKernel && weight.size(3) == kKernel && can_fold_pixels(images);
  if (!is_wanted) return torch::conv2d(images, weight, {}, kStride, kPadding);
  const torch::Tensor folded = fold_pixels(images, kPairsBefore, kPairs - 1 - kPairsBefore);
  const int64_t outputs = weight.size(0), channels = images.size(1);
  const torch::Tensor in_pairs =
      torch::constant_pad_nd(weight, {1, 0, 1, 0}).reshape({outputs, channels, kPairs, 2, kPairs, 2});
  const torch::Tensor of_places = in_pairs.permute({0, 3, 5, 1, 2, 4}).reshape({outputs, 4 * channels, kPairs, kPairs});
  return torch::conv2d(folded, torch::constant_pad_nd(of_places, {0, 0, 0, 0, 0, folded.size(1) - 4 * channels}));
}

}  // namespace tutti
