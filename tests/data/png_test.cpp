#include "data/png.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/png_files.h"

namespace tutti::test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Png : public ::testing::Test {
 protected:
  void SetUp() override {
    if (TUTTI_HAS_PNG == 0) GTEST_SKIP() << "built without libpng";
  }
};

std::string decoding_error(const std::string& content) {
  return error_text([&] { decode_png_rgb(content, "x.png"); });
}

TEST_F(Png, BecomesRedGreenBlueWhateverItsColours) {
  const auto rgb = [](PngColour colour, const std::string& samples, int bits = 8) {
    return decode_png_rgb(png_file(2, 1, colour, samples, bits), "x.png").bytes;
  };
  EXPECT_THAT(rgb(PngColour::kGrey, "\x10\x20"), ElementsAre(16, 16, 16, 32, 32, 32));
  EXPECT_THAT(rgb(PngColour::kRgb, "\x01\x02\x03\x04\x05\x06"), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(rgb(PngColour::kRgba, "\x01\x02\x03\xff\x64\x05\x06\x80"), ElementsAre(1, 2, 3, 50, 3, 3));
  EXPECT_THAT(rgb(PngColour::kGreyAlpha, "\x07\xff\x07" + std::string(1, '\0')), ElementsAre(7, 7, 7, 0, 0, 0));
  EXPECT_THAT(rgb(PngColour::kGrey, std::string("\x10\x10\x20\x20", 4), 16), ElementsAre(16, 16, 16, 32, 32, 32));
}

TEST_F(Png, BecomesGreyLevels) {
  const PngPixels pixels = decode_png_grey(png_file(1, 2, PngColour::kGrey, "\x01\xff"), "x.png");
  EXPECT_EQ(pixels.size, (PngSize{1, 2}));
  EXPECT_THAT(pixels.bytes, ElementsAre(1, 255));
}

TEST_F(Png, SaysItsSizeFromTheHeader) {
  const TempFolder folder;
  EXPECT_EQ(read_png_size(folder.write("a.png", png_file(3, 2, PngColour::kGrey, "abcdef"))), (PngSize{3, 2}));
  EXPECT_THAT(error_text([&] { read_png_size(folder.write("b.png", "no picture")); }),
              AllOf(HasSubstr("b.png"), HasSubstr("not a PNG")));
  EXPECT_THAT(error_text([&] { read_png_size(folder.path() / "c.png"); }), HasSubstr("c.png"));
}

TEST_F(Png, DamagedInAnyWayIsOneErrorWithItsName) {
  const std::string good = png_file(2, 2, PngColour::kRgb, "abcdefghijkl");
  EXPECT_EQ(decoding_error(good), "");
  EXPECT_THAT(decoding_error(""), HasSubstr("x.png: not a PNG"));
  for (size_t size = 1; size < good.size() - 16; ++size)  // the last chunks say nothing of the pixels
    EXPECT_THAT(decoding_error(good.substr(0, size)), HasSubstr("x.png: not a PNG")) << size;
  std::string flipped = good;
  flipped[45] ^= 1;  // in the pixels, which a checksum covers
  EXPECT_THAT(decoding_error(flipped), HasSubstr("x.png: not a PNG"));
}

TEST_F(Png, TakesNoMemoryForSizesThatAHeaderMerelyClaims) {
  std::string huge = png_file(900'000, 900'000, PngColour::kGrey, "");
  EXPECT_THAT(decoding_error(huge), AllOf(HasSubstr("900000x900000"), HasSubstr("far more")));
}

TEST_F(Png, OfMorePixelsThanAMemoryHasRoomForIsRefused) {
  const std::string content = png_file(20'000, 6'000, PngColour::kGrey, std::string(20'000 * 6'000, '\0'));
  EXPECT_THAT(error_text([&] { decode_png_rgb(content, "large.png"); }),
              AllOf(HasSubstr("large.png"), HasSubstr("20000x6000"), HasSubstr("100 million")));
}

}  // namespace
}  // namespace tutti::test
