#include "data/picture_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/resample.h"

namespace tutti::test {
namespace {

using ::testing::ElementsAre;

/// One row of grey pixels.
RgbPixels grey_row(const std::vector<int>& levels) {
  RgbPixels row{static_cast<int64_t>(levels.size()), 1, {}};
  for (const int level : levels) row.bytes.insert(row.bytes.end(), 3, static_cast<uint8_t>(level));
  return row;
}

std::vector<int> greys(const RgbPixels& pixels) {
  std::vector<int> levels;
  for (size_t i = 0; i < pixels.bytes.size(); i += 3) {
    EXPECT_EQ(pixels.bytes[i], pixels.bytes[i + 2]);
    levels.push_back(pixels.bytes[i]);
  }
  return levels;
}

std::vector<int> resized(const std::vector<int>& levels, int64_t outputs) {
  const auto size = static_cast<int64_t>(levels.size());
  return greys(
      resample(grey_row(levels), make_axis(0, static_cast<double>(size), 0, size, outputs), make_axis(0, 1, 0, 1, 1)));
}

TEST(Resample, LaysATriangleOverTheSource) {
  EXPECT_THAT(resized({10, 20, 30}, 3), ElementsAre(10, 20, 30));
  // Half as many: weights 3, 3, 1 and 1, 3, 3 of 7.
  EXPECT_THAT(resized({0, 100, 200, 60}, 2), ElementsAre((300 + 200 + 3) / 7, (100 + 600 + 180 + 3) / 7));
  // Twice as many: three quarters of the near pixel, one of the next.
  EXPECT_THAT(resized({0, 100}, 4), ElementsAre(0, 25, 75, 100));
}

TEST(Resample, OfAPartCountsNothingOutside) {
  const RgbPixels source = grey_row({255, 10, 10, 255});
  EXPECT_THAT(greys(show(source, PictureView{1, 0, 2, 1, {1, 0, 2, 1}}, 4, 1)), ElementsAre(10, 10, 10, 10));
}

TEST(CentreView, IsWhatResizeAndCentreCropOfTorchvisionShow) {
  // 500x375 becomes 341x256, of which columns 58 to 281 and rows 16 to 239 are shown: 117 / 2 is rounded to even.
  const PictureView view = centre_view(500, 375, 256, 224);
  EXPECT_DOUBLE_EQ(view.x, 58 * 500.0 / 341);
  EXPECT_DOUBLE_EQ(view.width, 224 * 500.0 / 341);
  EXPECT_DOUBLE_EQ(view.y, 16 * 375.0 / 256);
  const PictureView whole = centre_view(8, 8, 8, 8);
  EXPECT_EQ(whole.x, 0);
  EXPECT_EQ(whole.width, 8);
}

TEST(RandomView, StaysInsideAndShowsAsMuchAsItShould) {
  PortableRandom random(3);
  double least = 1, most = 0;
  for (int i = 0; i < 2000; ++i) {
    const PictureView view = random_view(300, 200, 0.25, random);
    ASSERT_GE(view.source.x, 0);
    ASSERT_LE(view.source.x + view.source.width, 300);
    ASSERT_LE(view.source.y + view.source.height, 200);
    const double share = view.width * view.height / 60000;
    least = std::min(least, share);
    most = std::max(most, share);
    EXPECT_GT(view.width / view.height, 0.72);
    EXPECT_LT(view.width / view.height, 1.39);
  }
  EXPECT_NEAR(least, 0.25, 0.02);
  EXPECT_GT(most, 0.85);
  const PictureView strip = random_view(1000, 10, 0.5, random);  // no such part has 3:4 to 4:3
  EXPECT_EQ(strip.source.width, 13);
  EXPECT_EQ(strip.source.height, 10);
}

}  // namespace
}  // namespace tutti::test
