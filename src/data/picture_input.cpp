#include "data/picture_input.h"

#include <ATen/ops/_upsample_bilinear2d_aa.h>

#include "data/png.h"

namespace tutti {

torch::Tensor read_picture(std::string_view content, const std::string& name, const std::vector<int64_t>& shape) {
  PngPixels pixels = shape[0] == 1 ? decode_png_grey(content, name) : decode_png_rgb(content, name);
  const torch::Tensor bytes =
      torch::from_blob(pixels.bytes.data(), {1, pixels.size.height, pixels.size.width, shape[0]}, torch::kUInt8);
  torch::Tensor picture = bytes.permute({0, 3, 1, 2}).to(torch::kFloat).contiguous();
  if (picture.size(2) != shape[1] || picture.size(3) != shape[2])
    picture = at::_upsample_bilinear2d_aa(picture, {shape[1], shape[2]}, /*align_corners=*/false).clamp_(0, 255);
  return picture.squeeze(0);
}

}  // namespace tutti
