#pragma once

#include <string_view>

namespace tutti {

/// How a camera was held, from the content of a JPEG file's APP1 segment: 1 (upright) to 8, as EXIF numbers it. 1 where
/// nothing, or nothing that makes sense, is said.
int exif_orientation(std::string_view segment);

}  // namespace tutti
