#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "data/jpeg.h"
#include "data/rgb_pixels.h"

namespace tutti {

/// A JPEG or PNG file in memory, told apart by its first bytes, as a person sees it: turned as its camera was held.
/// Every Error names the file. One thread.
class PictureFile {
 public:
  /// `content` outlives this; `name` is what an Error calls it.
  PictureFile(std::string_view content, std::string name);

  int64_t width() const { return width_; }
  int64_t height() const { return height_; }
  /// How much smaller it can be decoded: 8 for a JPEG, which then takes less time; 1 for others.
  int most_reduction() const { return jpeg_ ? 8 : 1; }

  /// A part at 1/reduction of its size (1, 2, 4 or 8), in pixels of the reduced picture. May be called once.
  RgbPixels decode(const PixelRect& part, int reduction);

 private:
  std::unique_ptr<JpegFile> jpeg_;
  RgbPixels pixels_;  // of a PNG
  int64_t width_ = 0;
  int64_t height_ = 0;
};

/// A side of a picture that is decoded at 1/reduction.
constexpr int64_t reduced_side(int64_t side, int reduction) { return (side + reduction - 1) / reduction; }

}  // namespace tutti
