// Stands in for jpeg.cpp in a build without libjpeg.

#include "data/jpeg.h"
#include "tutti/error.h"

namespace tutti {

struct JpegFile::Decoder {};

JpegFile::JpegFile(std::string_view, std::string name) {
  throw Error(
      "{}: this build cannot read JPEG files: libjpeg was not there when it was configured (Debian: libjpeg-dev)",
      name);
}
JpegFile::~JpegFile() = default;
int64_t JpegFile::width() const { return 0; }
int64_t JpegFile::height() const { return 0; }
int JpegFile::orientation() const { return 1; }
RgbPixels JpegFile::decode(const PixelRect&, int) { return {}; }

}  // namespace tutti
