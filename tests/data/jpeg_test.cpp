#include "data/jpeg.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/exif.h"
#include "data/jpeg_files.h"
#include "data/picture_file.h"
#include "data/png_files.h"
#include "data/random.h"

namespace tutti::test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

RgbPixels decode_all(const std::string& content, int reduction = 1) {
  JpegFile file(content, "x.jpg");
  return file.decode({0, 0, reduced_side(file.width(), reduction), reduced_side(file.height(), reduction)}, reduction);
}

std::string jpeg_error(const std::string& content) {
  return error_text([&] { decode_all(content); });
}

std::vector<uint8_t> cut(const RgbPixels& whole, const PixelRect& part) {
  std::vector<uint8_t> bytes;
  for (int64_t y = part.y; y < part.y + part.height; ++y)
    bytes.insert(bytes.end(), whole.at(part.x, y), whole.at(part.x, y) + part.width * 3);
  return bytes;
}

TEST(Jpeg, APartIsWhatTheWholePictureHasThere) {
  PortableRandom random(7);
  for (const JpegKind& kind : {JpegKind{}, JpegKind{3, 1}, JpegKind{1}, JpegKind{4}, JpegKind{3, 2, true}}) {
    const std::string content = jpeg_file(83, 61, kind, wave);
    for (const int reduction : {1, 2, 4, 8}) {
      const RgbPixels whole = decode_all(content, reduction);
      for (int i = 0; i < 40; ++i) {
        PixelRect part;
        part.x = static_cast<int64_t>(random.below(static_cast<uint64_t>(whole.width)));
        part.y = static_cast<int64_t>(random.below(static_cast<uint64_t>(whole.height)));
        part.width = 1 + static_cast<int64_t>(random.below(static_cast<uint64_t>(whole.width - part.x)));
        part.height = 1 + static_cast<int64_t>(random.below(static_cast<uint64_t>(whole.height - part.y)));
        EXPECT_EQ(JpegFile(content, "x.jpg").decode(part, reduction).bytes, cut(whole, part))
            << kind.components << " components, sampling " << kind.sampling << ", progressive " << kind.is_progressive
            << ", 1/" << reduction << ": " << part.width << "x" << part.height << " at " << part.x << ", " << part.y;
      }
    }
  }
}

TEST(Jpeg, BecomesRedGreenBlueWhateverItsColours) {
  const auto middle = [](const std::string& content) {
    const RgbPixels pixels = decode_all(content);
    return std::vector<int>(pixels.at(8, 8), pixels.at(8, 8) + 3);
  };
  const auto near = [](int value) { return AllOf(::testing::Ge(value - 3), ::testing::Le(value + 3)); };
  EXPECT_THAT(middle(plain_jpeg(16, 16, 200, 100, 50)), ElementsAre(near(200), near(100), near(50)));
  EXPECT_THAT(middle(plain_jpeg(16, 16, 77, 0, 0, {1})), ElementsAre(near(77), near(77), near(77)));
  // Adobe's CMYK is inverted: 255 is no ink.
  EXPECT_THAT(middle(jpeg_file(16, 16, {4}, [](int, int, int c) { return c == 3 ? 128 : 255 - 100 * c; })),
              ElementsAre(near(128), near(78), near(28)));
}

TEST(Jpeg, CutShortAnywhereIsOneErrorWithItsName) {
  for (const bool is_progressive : {false, true}) {
    const std::string good = jpeg_file(40, 24, {3, 2, is_progressive}, wave);
    EXPECT_EQ(jpeg_error(good), "");
    for (size_t size = 0; size + 2 < good.size(); ++size)
      EXPECT_THAT(jpeg_error(good.substr(0, size)), HasSubstr("x.jpg: not a JPEG that can be read")) << size;
  }
}

TEST(Jpeg, DamagedPixelsAreAnErrorAndNotGrey) {
  std::string damaged = jpeg_file(64, 64, {}, wave);
  damaged.replace(damaged.size() / 2, 2, "\xff\xd9");  // the end, too early
  EXPECT_THAT(jpeg_error(damaged), HasSubstr("x.jpg: not a JPEG that can be read"));
}

TEST(Jpeg, TakesNoMemoryForSizesThatAHeaderMerelyClaims) {
  std::string huge = jpeg_file(40, 24, {}, wave);
  const size_t sizes = huge.find("\xff\xc0") + 5;
  huge.replace(sizes, 4, "\xff\xdc\xff\xdc");  // JPEG's limit is 65500
  EXPECT_THAT(jpeg_error(huge), AllOf(HasSubstr("65500x65500"), HasSubstr("far more")));
  EXPECT_THAT(jpeg_error(huge + std::string(5'000'000, '\0')),
              AllOf(HasSubstr("65500x65500"), HasSubstr("100 million")));
}

TEST(Jpeg, IsShownAsItsCameraWasHeld) {
  // Seen upright: four quarters of red, green, blue and white. In the file it lies in eight ways.
  static constexpr int kQuarters[2][2][3] = {{{255, 0, 0}, {0, 255, 0}}, {{0, 0, 255}, {255, 255, 255}}};
  constexpr int kWidth = 32, kHeight = 16;
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const bool is_transposed = orientation >= 5;
    const auto stored = [&](int x, int y, int c) {
      // The inverse of what EXIF says: row 0 and column 0 of the file are at …
      static constexpr bool kFromRight[] = {false, true, true, false, false, true, true, false};
      static constexpr bool kFromBottom[] = {false, false, true, true, false, false, true, true};
      int column = is_transposed ? y : x, row = is_transposed ? x : y;
      if (kFromRight[orientation - 1]) column = kWidth - 1 - column;
      if (kFromBottom[orientation - 1]) row = kHeight - 1 - row;
      return kQuarters[row / (kHeight / 2)][column / (kWidth / 2)][c];
    };
    JpegKind kind;
    kind.orientation = orientation;
    kind.sampling = 1;
    const std::string content =
        jpeg_file(is_transposed ? kHeight : kWidth, is_transposed ? kWidth : kHeight, kind, stored);
    PictureFile file(content, "x.jpg");
    ASSERT_EQ(file.width(), kWidth) << orientation;
    ASSERT_EQ(file.height(), kHeight) << orientation;
    const RgbPixels pixels = PictureFile(content, "x.jpg").decode({8, 4, 16, 8}, 1);
    for (int y = 0; y < 2; ++y)
      for (int x = 0; x < 2; ++x)
        for (int c = 0; c < 3; ++c)
          EXPECT_NEAR(pixels.at(x == 0 ? 2 : 13, y == 0 ? 1 : 6)[c], kQuarters[y][x][c], 8)
              << "orientation " << orientation << " at " << x << ", " << y;
  }
}

TEST(Exif, OfNoSenseIsUpright) {
  for (int orientation = 1; orientation <= 8; ++orientation)
    EXPECT_EQ(exif_orientation(exif_segment(orientation)), orientation);
  std::string big("Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0", 32);
  EXPECT_EQ(exif_orientation(big), 6);
  EXPECT_EQ(exif_orientation(exif_segment(9)), 1);
  EXPECT_EQ(exif_orientation(""), 1);
  for (size_t size = 0; size < 26; ++size) EXPECT_EQ(exif_orientation(exif_segment(6).substr(0, size)), 1);
  std::string far = exif_segment(6);
  far.replace(10, 4, "\xff\xff\xff\xff");
  EXPECT_EQ(exif_orientation(far), 1);
}

TEST(PictureFile, KnowsAFileByItsFirstBytes) {
  if (TUTTI_HAS_PNG != 0) {
    PictureFile png(png_file(2, 1, PngColour::kRgb, "abcdef"), "really.jpg");
    EXPECT_EQ(png.width(), 2);
    EXPECT_THAT(png.decode({1, 0, 1, 1}, 1).bytes, ElementsAre('d', 'e', 'f'));
  }
  EXPECT_THAT(error_text([] { PictureFile("GIF89a", "x.jpg"); }), HasSubstr("x.jpg: neither a JPEG nor a PNG"));
  EXPECT_THAT(error_text([] { PictureFile("", "x.jpg"); }), HasSubstr("x.jpg: neither"));
}

}  // namespace
}  // namespace tutti::test
