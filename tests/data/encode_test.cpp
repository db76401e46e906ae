// What others bring becomes the sample that the data set itself would have made of it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/dataset.h"
#include "data/png.h"
#include "data/png_files.h"

namespace tutti::test {
namespace {

using ::testing::HasSubstr;

class Encoding : public ::testing::Test {
 protected:
  void SetUp() override {
    if (TUTTI_HAS_PNG == 0) GTEST_SKIP() << "built without libpng";
  }

  static Batch encode(const Dataset& data, const std::string& content) {
    Batch batch = data.make_batch(2, false);
    data.encode(content, "given", 1, batch);
    return batch;
  }
  static std::string problem(const Dataset& data, const std::string& content) {
    return error_text([&] { encode(data, content); });
  }

  TempFolder folder_;
};

TrainTest some_digits() {
  DataOptions options;
  options.train_size = 10;
  options.test_size = 10;
  return open_data(options);
}

TEST_F(Encoding, TakesADigitsGreyLevelsAsMnistNormalizesThem) {
  std::string pixels(28 * 28, '\0');
  pixels[3 * 28 + 5] = '\xff';
  const torch::Tensor image = encode(*some_digits().test, png_file(28, 28, PngColour::kGrey, pixels)).inputs[0][1][0];
  EXPECT_FLOAT_EQ(image[3][5].item<float>(), static_cast<float>((1 - 0.1307) / 0.3081));
  EXPECT_FLOAT_EQ(image[5][3].item<float>(), static_cast<float>(-0.1307 / 0.3081));
}

TEST_F(Encoding, ScalesAPictureSoThatEveryPixelCounts) {
  // 56×56 in stripes, white and black in turn: each pixel of 28×28 is half of both.
  std::string pixels;
  for (int i = 0; i < 56 * 28; ++i) pixels += std::string("\xff\0", 2);
  const torch::Tensor image = encode(*some_digits().test, png_file(56, 56, PngColour::kGrey, pixels)).inputs[0][1][0];
  const torch::Tensor inner = image.slice(0, 1, 27).slice(1, 1, 27);
  EXPECT_NEAR(inner.min().item<double>(), (127.5 / 255 - 0.1307) / 0.3081, 0.02);
  EXPECT_NEAR(inner.max().item<double>(), (127.5 / 255 - 0.1307) / 0.3081, 0.02);
}

TEST_F(Encoding, OfSegmentationGivesWhatLoadingGives) {
  for (const char* const part : {"images", "masks"}) fs::create_directory(folder_.path() / part);
  for (int i = 0; i < 5; ++i) {
    const std::string name = "cell" + std::to_string(i) + ".png";
    folder_.write("images/" + name, png_file(2, 2, PngColour::kGrey, std::string{static_cast<char>(i), '\xc8', 0, 9}));
    folder_.write("masks/" + name, png_file(2, 2, PngColour::kGrey, std::string("\0\xff\0\0", 4)));
  }
  DataOptions options;
  options.name = "folder-segmentation";
  options.folder = folder_.path().string();
  const TrainTest data = open_data(options);
  Batch loaded = data.test->make_batch(1, false);
  data.test->load(0, 0, loaded);
  const int grey = static_cast<int>(std::lround(loaded.inputs[0][0][0][0][0].item<double>() * 255));
  const std::string file = png_file(2, 2, PngColour::kGrey, std::string{static_cast<char>(grey), '\xc8', 0, 9});
  EXPECT_TRUE(torch::allclose(encode(*data.test, file).inputs[0][1], loaded.inputs[0][0]));
}

TEST_F(Encoding, NamesWhatIsNoPicture) {
  EXPECT_THAT(problem(*some_digits().test, "not a picture"), HasSubstr("given: neither a JPEG nor a PNG"));
}

TEST_F(Encoding, IsRefusedByADataSetThatHasNoWay) {
  DataOptions options;
  options.name = "synthetic-sst5";
  EXPECT_THAT(problem(*open_data(options).test, "a film"),
              HasSubstr("given: the data set 'synthetic-sst5' does not say how"));
}

TEST_F(Encoding, NumbersWordsAsTrainingDid) {
  folder_.write("train.txt", "(3 (2 A) (4 (3 Good) (2 good)))\n(1 (2 a) (0 (3 good) (1 (1 bad) (2 film))))\n");
  folder_.write("test.txt", "(0 (2 never) (3 good))\n");
  DataOptions options;
  options.name = "sst5";
  options.folder = folder_.path().string();
  options.tokens = 4;
  const auto data = open_data(options).test;
  EXPECT_TRUE(torch::equal(encode(*data, "A Good film!").inputs[0][1], torch::tensor({3, 2, 1, 1}, torch::kLong)));
  EXPECT_TRUE(torch::equal(encode(*data, "a").inputs[0][1], torch::tensor({3, 0, 0, 0}, torch::kLong)));
  EXPECT_EQ(data->label(4), "very positive");
  EXPECT_THAT(problem(*data, "  "), HasSubstr("given: has no words"));
}

TEST_F(Encoding, PutsMasksWhereTheTextHasThem) {
  folder_.write("vocabulary", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nparis\nis\nnice\n.\n");
  std::string text;
  for (int i = 0; i < 40; ++i) text += "Paris is nice. Paris is nice. ";
  folder_.write("book.txt", text);
  DataOptions options;
  options.name = "text";
  options.folder = folder_.path().string();
  options.vocabulary = (folder_.path() / "vocabulary").string();
  options.tokens = 12;
  const auto data = open_data(options).test;
  const Batch batch = encode(*data, "Paris [MASK] nice.");
  const auto numbers = [&](std::size_t input) { return batch.inputs[input][1]; };
  EXPECT_TRUE(torch::equal(numbers(0), torch::tensor({2, 5, 4, 7, 8, 3, 0, 0, 0, 0, 0, 0}, torch::kLong)));
  EXPECT_EQ(numbers(1).sum().item<int64_t>(), 0) << "one segment";
  EXPECT_EQ(numbers(2).sum().item<int64_t>(), 6);
  EXPECT_EQ(numbers(3)[0].item<int64_t>(), 2);
  EXPECT_GE(numbers(4)[0].item<int64_t>(), 0);
  EXPECT_EQ(numbers(4)[1].item<int64_t>(), -100);
  EXPECT_EQ(data->label(5), "paris");
  EXPECT_THAT(problem(*data, "Paris is nice."), HasSubstr("given: has no [MASK]"));
  EXPECT_THAT(problem(*data, "[MASK] [MASK] [MASK]"), HasSubstr("has 3 times [MASK]; 2 are the most"));
  EXPECT_THAT(problem(*data, "[MASK] is nice. Paris is nice. Paris is nice."), HasSubstr("given: has 14 tokens"));
}

TEST_F(Encoding, APngThatIsWrittenReadsAsItWas) {
  const PngPixels pixels{{3, 2}, {0, 1, 2, 253, 254, 255}};
  const PngPixels read = decode_png_grey(encode_png_grey(pixels), "written");
  EXPECT_EQ(read.size, pixels.size);
  EXPECT_EQ(read.bytes, pixels.bytes);
}

}  // namespace
}  // namespace tutti::test
