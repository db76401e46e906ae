#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "data/rgb_pixels.h"

namespace tutti {

/// A JPEG file in memory. Its header is read when it is made, its pixels once, by decode(). One thread.
/// Every Error names the file. Damage in the part that is decoded is an Error, not grey pixels.
class JpegFile {
 public:
  /// `content` outlives this; `name` is what an Error calls it. Throws Error for a header that is damaged, or announces
  /// more pixels than the content can hold or than kMostPixels.
  JpegFile(std::string_view content, std::string name);
  ~JpegFile();
  JpegFile(const JpegFile&) = delete;
  JpegFile& operator=(const JpegFile&) = delete;

  /// As the file has it: a camera that was turned is for the caller.
  int64_t width() const;
  int64_t height() const;
  /// EXIF's, 1 to 8.
  int orientation() const;

  /// A part of the picture at 1/reduction of its size (1, 2, 4 or 8), in pixels of that smaller picture, which is
  /// ceil(width / reduction) wide. Grey becomes three equal channels; CMYK is taken as Adobe writes it, inverted.
  /// Only what the part needs is decoded. May be called once.
  RgbPixels decode(const PixelRect& part, int reduction);

 private:
  struct Decoder;
  std::unique_ptr<Decoder> decoder_;
};

}  // namespace tutti
