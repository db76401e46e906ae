#include "inference/predict.h"

#include <gtest/gtest.h>

#include "data/png.h"
#include "inference/mask_files.h"
#include "inference/small_trained_model.h"
#include "tutti/error.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

class Predicting : public testing::Test {
 protected:
  void SetUp() override {
    if (TUTTI_HAS_PNG == 0) GTEST_SKIP() << "built without libpng";
  }
  /// A grey picture, brighter from pixel to pixel.
  static std::string picture(int64_t width, int64_t height, int first) {
    PngPixels pixels{{width, height}, {}};
    for (int64_t i = 0; i < width * height; ++i) pixels.bytes.push_back(static_cast<uint8_t>(first + i));
    return encode_png_grey(pixels);
  }
  fs::path write_picture(const std::string& name, int64_t side, int first) const {
    write_file_atomically(folder_.path() / name, picture(side, side, first));
    return folder_.path() / name;
  }
  FolderForWeights folder_;
};

TEST_F(Predicting, AnswersEachInputByItself) {
  TrainedModel trained = untrained(folder_, small_run("mnist-cnn", "digits"));
  std::vector<Input> inputs;
  for (int i = 0; i < 9; ++i) inputs.push_back({"p" + std::to_string(i), picture(28, 28, i * 20), ""});
  inputs[3] = {"broken", "no picture", ""};
  inputs[8] = {"gone", "", "cannot open gone"};
  const std::vector<InputPrediction> all = predict(trained, inputs, 2);
  EXPECT_NE(all[3].problem.find("broken: neither a JPEG nor a PNG"), std::string::npos) << all[3].problem;
  EXPECT_EQ(all[8].problem, "cannot open gone");
  for (const std::size_t i : {0, 2, 4, 7}) {
    const InputPrediction alone = predict(trained, {inputs[i]}, 10)[0];
    ASSERT_EQ(all[i].guesses.size(), 1U);
    ASSERT_EQ(all[i].guesses[0].size(), 2U);
    double sum = 0;
    for (const Guess& guess : alone.guesses[0]) sum += guess.probability;
    EXPECT_NEAR(sum, 1, 1e-6);
    EXPECT_EQ(all[i].guesses[0][0].label, alone.guesses[0][0].label);
    EXPECT_NEAR(all[i].guesses[0][0].probability, alone.guesses[0][0].probability, 1e-5);
    EXPECT_GE(all[i].guesses[0][0].probability, all[i].guesses[0][1].probability);
  }
}

TEST_F(Predicting, WritesMasksOfThePicturesOwnSize) {
  const fs::path data = folder_.path() / "data";
  for (const char* const part : {"images", "masks"}) make_folders(data / part);
  for (const char* const name : {"a.png", "b.png"})
    for (const char* const part : {"images", "masks"}) write_picture(fs::path("data") / part / name, 16, 0);
  TrainOptions options = small_run("unet", "folder-segmentation");
  options.data.folder = data.string();
  options.data.train_size = options.data.test_size = 0;
  TrainedModel trained = untrained(folder_, options);
  const fs::path file = write_picture("large.png", 40, 0);
  const InputPrediction prediction = predict(trained, {{file.string(), read_file(file), ""}}, 1)[0];
  ASSERT_EQ(prediction.problem, "");
  MaskFiles beside(""), folder(folder_.path() / "out"), same(folder_.path());
  EXPECT_EQ(beside.write(prediction), folder_.path() / "large-mask.png");
  const fs::path mask = folder.write(prediction);
  EXPECT_EQ(mask, folder_.path() / "out" / "large.png");
  EXPECT_EQ(read_png_size(mask), (PngSize{40, 40}));
  for (const uint8_t level : decode_png_grey(read_file(mask), "").bytes) EXPECT_TRUE(level == 0 || level == 255);
  EXPECT_THROW(folder.write(prediction), Error) << "another picture of this name";
  EXPECT_THROW(same.write(prediction), Error) << "the picture itself";
  EXPECT_EQ(read_file(file), picture(40, 40, 0));
}

}  // namespace
}  // namespace tutti
