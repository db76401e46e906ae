#include "data/picture_view.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "data/resample.h"

namespace tutti {
namespace {

constexpr int kTries = 10;
constexpr double kWidest = 4.0 / 3;

PictureView part_view(int64_t x, int64_t y, int64_t width, int64_t height) {
  return {static_cast<double>(x),
          static_cast<double>(y),
          static_cast<double>(width),
          static_cast<double>(height),
          {x, y, width, height}};
}

double between(double low, double high, PortableRandom& random) {
  return low + (high - low) * static_cast<double>(random.unit());
}

/// As Python's round(): halves go to the even neighbour.
int64_t rounded(double value) { return std::llrint(value); }

/// Sides of a picture whose shorter one was made `shorter`; the other is rounded down.
std::pair<int64_t, int64_t> sides_at(int64_t width, int64_t height, int64_t shorter) {
  if (width <= height) return {shorter, std::max<int64_t>(1, shorter * height / width)};
  return {std::max<int64_t>(1, shorter * width / height), shorter};
}

/// One side of a view in a picture that is decoded at 1/reduction.
ResampleAxis view_axis(double start, double extent, int64_t low, int64_t size, int64_t whole, int reduction,
                       int64_t outputs) {
  const double by = 1.0 / reduction;
  return make_axis(start * by, extent * by, low / reduction,
                   std::min(reduced_side(low + size, reduction), reduced_side(whole, reduction)), outputs);
}

struct ViewAxes {
  ViewAxes(const PictureView& view, int64_t picture_width, int64_t picture_height, int reduction, int64_t width,
           int64_t height)
      : x(view_axis(view.x, view.width, view.source.x, view.source.width, picture_width, reduction, width)),
        y(view_axis(view.y, view.height, view.source.y, view.source.height, picture_height, reduction, height)) {}
  PixelRect part() const { return {x.begin, y.begin, x.end - x.begin, y.end - y.begin}; }
  ResampleAxis x, y;
};

}  // namespace

PictureView centre_view(int64_t width, int64_t height, int64_t shorter, int64_t side) {
  const auto [to_width, to_height] = sides_at(width, height, shorter);
  const double scale_x = static_cast<double>(width) / static_cast<double>(to_width);
  const double scale_y = static_cast<double>(height) / static_cast<double>(to_height);
  const auto left = static_cast<double>(rounded(static_cast<double>(to_width - side) / 2));
  const auto top = static_cast<double>(rounded(static_cast<double>(to_height - side) / 2));
  const auto shown = static_cast<double>(side);
  return {left * scale_x, top * scale_y, shown * scale_x, shown * scale_y, {0, 0, width, height}};
}

PictureView random_view(int64_t width, int64_t height, double least_share, PortableRandom& random) {
  const double area = static_cast<double>(width) * static_cast<double>(height);
  for (int i = 0; i < kTries; ++i) {
    const double wanted = area * between(least_share, 1, random);
    const double ratio = std::exp(between(-std::log(kWidest), std::log(kWidest), random));
    const int64_t w = rounded(std::sqrt(wanted * ratio)), h = rounded(std::sqrt(wanted / ratio));
    if (w < 1 || h < 1 || w > width || h > height) continue;
    const auto y = static_cast<int64_t>(random.below(static_cast<uint64_t>(height - h + 1)));
    const auto x = static_cast<int64_t>(random.below(static_cast<uint64_t>(width - w + 1)));
    return part_view(x, y, w, h);
  }
  // A picture that is very wide or very high: its middle.
  const int64_t w = std::min(width, std::max<int64_t>(1, rounded(static_cast<double>(height) * kWidest)));
  const int64_t h = std::min(height, std::max<int64_t>(1, rounded(static_cast<double>(width) * kWidest)));
  return part_view((width - w) / 2, (height - h) / 2, w, h);
}

PictureView whole_view(int64_t width, int64_t height) { return part_view(0, 0, width, height); }

RgbPixels show(PictureFile& file, const PictureView& view, int64_t width, int64_t height) {
  int reduction = 1;
  while (reduction < file.most_reduction() && view.width >= static_cast<double>(2 * reduction * width) &&
         view.height >= static_cast<double>(2 * reduction * height))
    reduction *= 2;
  const ViewAxes axes(view, file.width(), file.height(), reduction, width, height);
  return resample(file.decode(axes.part(), reduction), axes.x, axes.y);
}

RgbPixels show(const RgbPixels& picture, const PictureView& view, int64_t width, int64_t height) {
  const ViewAxes axes(view, picture.width, picture.height, 1, width, height);
  const PixelRect part = axes.part();
  RgbPixels cut{part.width, part.height, std::vector<uint8_t>(static_cast<size_t>(part.width * part.height * 3))};
  for (int64_t y = 0; y < part.height; ++y)
    std::copy_n(picture.at(part.x, part.y + y), part.width * 3, cut.bytes.data() + y * part.width * 3);
  return resample(cut, axes.x, axes.y);
}

RgbPixels shrink(PictureFile& file, int64_t shorter) {
  if (std::min(file.width(), file.height()) <= shorter) return file.decode({0, 0, file.width(), file.height()}, 1);
  const auto [width, height] = sides_at(file.width(), file.height(), shorter);
  return show(file, whole_view(file.width(), file.height()), width, height);
}

}  // namespace tutti
