#pragma once

#include <torch/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tutti {

/// A picture's file as a float tensor of `shape`, {1 or 3, height, width}, with levels from 0 to 255: grey, or red,
/// green and blue. One of another size is scaled, bilinearly; where it shrinks, every pixel counts, as torchvision and
/// PIL have it. `name` is what an Error calls it.
torch::Tensor read_picture(std::string_view content, const std::string& name, const std::vector<int64_t>& shape);

}  // namespace tutti
