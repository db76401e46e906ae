#pragma once

#include <cstdint>

#include "data/picture_file.h"
#include "data/random.h"
#include "data/rgb_pixels.h"

namespace tutti {

/// What of a picture a network sees, in the picture's pixels.
struct PictureView {
  double x = 0;
  double y = 0;
  double width = 0;
  double height = 0;
  PixelRect source;          // no pixel outside counts
  bool is_mirrored = false;  // left and right change places
};

/// The middle square of a picture whose shorter side was made `shorter` pixels, `side` of them on each side: what is
/// tested, as torchvision's Resize(shorter) and CenterCrop(side) do.
PictureView centre_view(int64_t width, int64_t height, int64_t shorter, int64_t side);

/// A random part of `least_share` to all of the area, 3:4 to 4:3: torchvision's RandomResizedCrop. Not mirrored.
PictureView random_view(int64_t width, int64_t height, double least_share, PortableRandom& random);

/// All of it: squeezed, where the result has other proportions.
PictureView whole_view(int64_t width, int64_t height);

/// The view in width × height pixels, not yet mirrored. Decodes no more of the file, and no finer, than that needs.
RgbPixels show(PictureFile& file, const PictureView& view, int64_t width, int64_t height);
/// The same of a picture that was decoded.
RgbPixels show(const RgbPixels& picture, const PictureView& view, int64_t width, int64_t height);

/// The whole picture with a shorter side of at most `shorter` pixels: as large as centre_view's is.
RgbPixels shrink(PictureFile& file, int64_t shorter);

}  // namespace tutti
