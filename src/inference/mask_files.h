#pragma once

#include <filesystem>
#include <set>
#include <string>

#include "inference/predict.h"

namespace tutti {

/// Where masks are written, and which names are taken already.
class MaskFiles {
 public:
  /// `folder`: made where it is not there; empty: beside each picture.
  explicit MaskFiles(std::filesystem::path folder);

  /// Writes a mask of the picture's own size: FOLDER/NAME.png, or NAME-mask.png beside the picture. Returns the file.
  /// Throws Error, also where that is the picture itself or another one's mask.
  std::filesystem::path write(const InputPrediction& prediction);

 private:
  std::filesystem::path folder_;
  std::set<std::filesystem::path> written_;
};

}  // namespace tutti
