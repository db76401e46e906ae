#include "data/picture_input.h"

#include <ATen/ops/_upsample_bilinear2d_aa.h>

#include "data/picture_file.h"

namespace tutti {

torch::Tensor read_picture(std::string_view content, const std::string& name, const std::vector<int64_t>& shape) {
  PictureFile file(content, name);
  RgbPixels pixels = file.decode({0, 0, file.width(), file.height()}, 1);
  const torch::Tensor bytes = torch::from_blob(pixels.bytes.data(), {1, pixels.height, pixels.width, 3}, torch::kUInt8);
  torch::Tensor picture = bytes.permute({0, 3, 1, 2}).to(torch::kFloat).contiguous();
  if (shape[0] == 1) {
    const torch::Tensor weights = torch::tensor({0.299F, 0.587F, 0.114F}).view({1, 3, 1, 1});
    picture = (picture * weights).sum(1, /*keepdim=*/true).round_().clamp_(0, 255);
  }
  if (picture.size(2) != shape[1] || picture.size(3) != shape[2])
    picture = at::_upsample_bilinear2d_aa(picture, {shape[1], shape[2]}, /*align_corners=*/false).clamp_(0, 255);
  return picture.squeeze(0);
}

}  // namespace tutti
