#include "data/picture_file.h"

#include <cstring>
#include <utility>

#include "data/png.h"
#include "tutti/error.h"

namespace tutti {
namespace {

using namespace std::literals;

/// How the pixels that are seen lie in the file, for EXIF's orientations 1 to 8.
struct Turn {
  explicit Turn(int orientation)
      : is_transposed(orientation >= 5),
        mirrors_columns(orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8),
        mirrors_rows(orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7) {}
  bool is_transposed;    // x and y change places; after that, in the file's own directions:
  bool mirrors_columns;  // the last column is seen first
  bool mirrors_rows;

  bool is_none() const { return !is_transposed && !mirrors_columns && !mirrors_rows; }

  /// Where a part that is seen lies in a file of this size.
  PixelRect in_file(PixelRect part, int64_t file_width, int64_t file_height) const {
    if (is_transposed) part = {part.y, part.x, part.height, part.width};
    if (mirrors_columns) part.x = file_width - part.x - part.width;
    if (mirrors_rows) part.y = file_height - part.y - part.height;
    return part;
  }

  RgbPixels apply(const RgbPixels& stored) const {
    RgbPixels seen{stored.width, stored.height, std::vector<uint8_t>(stored.bytes.size())};
    if (is_transposed) std::swap(seen.width, seen.height);
    uint8_t* to = seen.bytes.data();
    for (int64_t y = 0; y < seen.height; ++y) {
      for (int64_t x = 0; x < seen.width; ++x, to += 3) {
        int64_t column = is_transposed ? y : x, row = is_transposed ? x : y;
        if (mirrors_columns) column = stored.width - 1 - column;
        if (mirrors_rows) row = stored.height - 1 - row;
        std::memcpy(to, stored.at(column, row), 3);
      }
    }
    return seen;
  }
};

}  // namespace

PictureFile::PictureFile(std::string_view content, std::string name) {
  if (content.substr(0, 2) == "\xff\xd8"sv) {
    jpeg_ = std::make_unique<JpegFile>(content, std::move(name));
    width_ = jpeg_->width();
    height_ = jpeg_->height();
    if (Turn(jpeg_->orientation()).is_transposed) std::swap(width_, height_);
    return;
  }
  if (content.substr(0, 4) != "\x89PNG"sv)
    throw Error("{}: neither a JPEG nor a PNG by its first bytes. Replace it with a fresh copy, or convert it.", name);
  PngPixels png = decode_png_rgb(content, name);
  pixels_ = {png.size.width, png.size.height, std::move(png.bytes)};
  width_ = pixels_.width;
  height_ = pixels_.height;
}

RgbPixels PictureFile::decode(const PixelRect& part, int reduction) {
  if (jpeg_) {
    const Turn turn(jpeg_->orientation());
    const PixelRect in_file =
        turn.in_file(part, reduced_side(jpeg_->width(), reduction), reduced_side(jpeg_->height(), reduction));
    RgbPixels stored = jpeg_->decode(in_file, reduction);
    return turn.is_none() ? std::move(stored) : turn.apply(stored);
  }
  if (part.width == width_ && part.height == height_) return std::move(pixels_);
  RgbPixels cut{part.width, part.height, std::vector<uint8_t>(static_cast<size_t>(part.width * part.height * 3))};
  for (int64_t y = 0; y < part.height; ++y)
    std::memcpy(cut.bytes.data() + y * part.width * 3, pixels_.at(part.x, part.y + y),
                static_cast<size_t>(part.width * 3));
  return cut;
}

}  // namespace tutti
