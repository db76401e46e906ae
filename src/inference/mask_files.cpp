#include "inference/mask_files.h"

#include <ATen/ops/upsample_bilinear2d.h>

#include "base/files.h"
#include "data/png.h"
#include "tutti/error.h"

namespace tutti {

namespace fs = std::filesystem;

MaskFiles::MaskFiles(fs::path folder) : folder_(std::move(folder)) {
  if (!folder_.empty()) make_folders(folder_);
}

fs::path MaskFiles::write(const InputPrediction& prediction) {
  const fs::path picture = prediction.input;
  const std::string name = picture.stem().string();
  fs::path file = folder_.empty() ? picture.parent_path() / (name + "-mask.png") : folder_ / (name + ".png");
  std::error_code ignored;
  if (fs::equivalent(file, picture, ignored))
    throw Error("{}: its mask would be written over it: choose another folder with -o", picture.string());
  if (!written_.insert(fs::absolute(file).lexically_normal()).second)
    throw Error("{}: another picture's mask has this name, {}: predict it by itself", picture.string(), file.string());

  PngSize size{prediction.width, prediction.height};
  try {
    size = read_png_size(picture);
  } catch (const Error&) {  // a picture of another format: the mask has the model's size
  }
  torch::Tensor scores =
      torch::tensor(prediction.scores, torch::kFloat).view({1, 1, prediction.height, prediction.width});
  if (size.width != prediction.width || size.height != prediction.height)
    scores = at::upsample_bilinear2d(scores, {size.height, size.width}, /*align_corners=*/false);
  const torch::Tensor levels = scores.gt(0).to(torch::kUInt8).mul_(255).contiguous();
  const auto* const bytes = levels.data_ptr<uint8_t>();
  write_file_atomically(file, encode_png_grey({size, {bytes, bytes + levels.numel()}}));
  return file;
}

}  // namespace tutti
