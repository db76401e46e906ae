#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "data/dataset.h"
#include "data/loader.h"
#include "data/png_files.h"
#include "data/real_data.h"

namespace tutti::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class Segmentation : public ::testing::Test {
 protected:
  void SetUp() override {
    if (TUTTI_HAS_PNG == 0) GTEST_SKIP() << "built without libpng";
    fs::create_directory(folder_.path() / "images");
    fs::create_directory(folder_.path() / "masks");
  }

  /// Image i is grey level i in the upper left corner, 200 beside it and 0 below; its mask is what is brighter than
  /// 100.
  void write_pairs(int count) const {
    for (int i = 0; i < count; ++i) {
      const std::string name = "cell" + std::to_string(i) + ".png";
      const std::string pixels{static_cast<char>(i), '\xc8', 0, 0};
      folder_.write("images/" + name, png_file(2, 2, PngColour::kGrey, pixels));
      folder_.write("masks/" + name, png_file(2, 2, PngColour::kGrey, std::string("\0\xff\0\0", 4)));
    }
  }
  DataOptions options() const {
    DataOptions options;
    options.name = "folder-segmentation";
    options.folder = folder_.path().string();
    return options;
  }
  std::string opening_error() const {
    return error_text([&] { open_data(options()); });
  }
  static Batch load(const Dataset& data, Pick pick) {
    Batch batch = data.make_batch(1, false);
    data.load(pick, 0, batch);
    return batch;
  }
  /// Which images a data set holds, by their corner's grey level.
  static std::set<int> members(const Dataset& data) {
    std::set<int> result;
    for (int64_t i = 0; i < data.size(); ++i) {
      const torch::Tensor pixels = load(data, i).inputs[0][0][0];
      result.insert(static_cast<int>(std::lround(pixels.sum().item<double>() * 255)) - 200);
    }
    return result;
  }

  TempFolder folder_;
};

TEST_F(Segmentation, GivesThreeChannelsFromZeroToOneAndAMaskOfZerosAndOnes) {
  write_pairs(5);
  DataOptions plain = options();
  plain.augment = false;
  const TrainTest data = open_data(plain);
  EXPECT_EQ(data.train->traits().kind, SampleKind::segmentation);
  EXPECT_EQ(data.train->traits().shape, (std::vector<int64_t>{3, 2, 2}));
  const Batch batch = load(*data.train, 0);
  EXPECT_EQ(batch.inputs[0].sizes(), (torch::IntArrayRef{1, 3, 2, 2}));
  EXPECT_EQ(batch.target.sizes(), (torch::IntArrayRef{1, 1, 2, 2}));
  for (int64_t channel = 0; channel < 3; ++channel) {
    EXPECT_FLOAT_EQ((batch.inputs[0][0][channel][0][1].item<float>()), 200 / 255.F);
    EXPECT_EQ((batch.inputs[0][0][channel][1][0].item<float>()), 0);
  }
  EXPECT_TRUE(batch.target.reshape({4}).equal(torch::tensor({0.F, 1.F, 0.F, 0.F})));
}

TEST_F(Segmentation, HoldsOutAFifthWhateverTheOrderOfTheFiles) {
  write_pairs(20);
  const TrainTest data = open_data(options());
  EXPECT_EQ(data.test->size(), 4);
  std::set<int> all = members(*data.train);
  const std::set<int> test = members(*data.test);
  EXPECT_EQ(test, (std::set<int>{3, 5, 8, 14}));  // by the hash of their names: the same on every machine
  all.insert(test.begin(), test.end());
  EXPECT_EQ(all.size(), 20U);
}

TEST_F(Segmentation, TurnsImageAndMaskTogetherAndAnewInEachEpoch) {
  write_pairs(5);
  const TrainTest data = open_data(options());
  std::set<std::string> seen;
  for (int64_t epoch = 0; epoch < 64; ++epoch) {
    const Batch batch = load(*data.train, {0, epoch});
    EXPECT_TRUE(batch.inputs[0].select(1, 0).gt(100 / 255.F).equal(batch.target[0].gt(.5)));
    EXPECT_TRUE(load(*data.train, {0, epoch}).inputs[0].equal(batch.inputs[0]));
    std::string places;
    for (int64_t i = 0; i < 4; ++i)
      places += std::to_string(batch.inputs[0][0][0].reshape({4})[i].item<float>() * 255) + " ";
    seen.insert(places);
  }
  EXPECT_EQ(seen.size(), 8U);  // four turns, each also mirrored
  EXPECT_TRUE(load(*data.test, {0, 0}).inputs[0].equal(load(*data.test, {0, 5}).inputs[0]));
}

TEST_F(Segmentation, IsTheSameWithAnyNumberOfWorkers) {
  write_pairs(10);
  const auto data = open_data(options()).train;
  const auto epoch_with = [&](int workers) {
    LoaderOptions loading;
    loading.workers = workers;
    loading.epoch = 3;
    Loader loader(data, {{7, 1}, {0, 2}, {3, 4}, {6}}, loading);
    std::vector<torch::Tensor> parts;
    while (loader.has_next()) parts.push_back(loader.next().inputs[0]);
    return torch::cat(parts);
  };
  const torch::Tensor alone = epoch_with(0);
  EXPECT_TRUE(epoch_with(1).equal(alone));
  EXPECT_TRUE(epoch_with(4).equal(alone));
}

TEST_F(Segmentation, NamesAnImageWithoutMaskAndAMaskWithoutImage) {
  write_pairs(5);
  fs::rename(folder_.path() / "masks/cell3.png", folder_.path() / "masks/other.png");
  EXPECT_THAT(opening_error(),
              AllOf(HasSubstr("images/cell3.png: an image without a mask"), HasSubstr("masks/cell3.png")));
  fs::remove(folder_.path() / "images/cell3.png");
  EXPECT_THAT(opening_error(),
              AllOf(HasSubstr("masks/other.png: a mask without an image"), HasSubstr("images/other.png")));
}

TEST_F(Segmentation, NamesAMaskOfAnotherSizeThanItsImage) {
  write_pairs(5);
  folder_.write("masks/cell3.png", png_file(1, 2, PngColour::kGrey, "ab"));
  EXPECT_THAT(opening_error(), AllOf(HasSubstr("masks/cell3.png: 1x2 pixels"), HasSubstr("has 2x2")));
}

TEST_F(Segmentation, SqueezesPicturesOfDifferentSizesIntoOne) {
  write_pairs(5);
  for (const char* part : {"images", "masks"})  // left half dark, right half bright
    folder_.write(part + std::string("/cell3.png"), png_file(4, 1, PngColour::kGrey, std::string("\0\0\xff\xff", 4)));
  EXPECT_THAT(open_data(options()).train->traits().shape, ::testing::ElementsAre(3, 256, 256));
  DataOptions small = options();
  small.image_size = 2;
  small.augment = false;
  const TrainTest data = open_data(small);
  bool is_there = false;
  for (const auto& part : {data.train, data.test}) {
    EXPECT_THAT(part->traits().shape, ::testing::ElementsAre(3, 2, 2));
    for (int64_t i = 0; i < part->size(); ++i) {
      const Batch batch = load(*part, i);
      EXPECT_TRUE(batch.target.eq(0).logical_or(batch.target.eq(1)).all().item<bool>());
      is_there = is_there || batch.target.reshape({4}).equal(torch::tensor({0.F, 1.F, 0.F, 1.F}));
    }
  }
  EXPECT_TRUE(is_there) << "all of it is seen";
}

TEST_F(Segmentation, NamesACorruptPictureThroughTheLoaderToo) {
  write_pairs(2);
  for (const char* name : {"cell0.png", "cell1.png"}) {
    std::string content = read_file(folder_.path() / "images" / name);
    content[44] ^= 0x55;  // behind the header
    folder_.write(std::string("images/") + name, content);
  }
  const auto data = open_data(options()).train;
  for (const int workers : {0, 2}) {
    LoaderOptions loading;
    loading.workers = workers;
    Loader loader(data, {{0}}, loading);
    EXPECT_THAT(error_text([&] { loader.next(); }), AllOf(HasSubstr("images/cell"), HasSubstr("not a PNG")));
  }
}

TEST_F(Segmentation, NeedsPicturesAndTheirFolders) {
  EXPECT_THAT(opening_error(), HasSubstr("0 images with masks"));
  fs::remove(folder_.path() / "masks");
  EXPECT_THAT(opening_error(), AllOf(HasSubstr("masks: cannot list it"), HasSubstr("No such file")));
  DataOptions nowhere = options();
  nowhere.folder = "/nowhere";
  EXPECT_THAT(error_text([&] { open_data(nowhere); }), AllOf(HasSubstr("/nowhere"), HasSubstr("images/")));
}

TEST_F(Segmentation, OfRealNucleiIsWhatItsPageSays) {
  TUTTI_REAL_DATA(folder, "dsb2018-nuclei-256");
  DataOptions nuclei;
  nuclei.name = "nuclei";
  nuclei.folder = folder.string();
  const TrainTest data = open_data(nuclei);
  EXPECT_EQ(data.train->size() + data.test->size(), 334);
  EXPECT_EQ(data.test->size(), 67);
  EXPECT_EQ(data.train->traits().shape, (std::vector<int64_t>{3, 256, 256}));
  double foreground = 0;
  for (const auto& part : {data.train, data.test}) {
    Batch batch = part->make_batch(1, false);
    for (int64_t i = 0; i < part->size(); ++i) {
      part->load(i, 0, batch);
      foreground += batch.target.mean().item<double>() / 334;
      EXPECT_LE(batch.inputs[0].max().item<float>(), 1);
      EXPECT_TRUE(batch.inputs[0][0][0].equal(batch.inputs[0][0][2]));  // all are grey
    }
  }
  EXPECT_NEAR(foreground, .077, .001);
}

}  // namespace
}  // namespace tutti::test
