#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/files.h"
#include "data/dataset.h"
#include "data/jpeg_files.h"
#include "data/loader.h"
#include "data/picture_samples.h"
#include "data/png_files.h"

namespace tutti::test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class ImageFolder : public ::testing::Test {
 protected:
  void write(const std::string& name, const std::string& content) const {
    fs::create_directories((folder_.path() / name).parent_path());
    folder_.write(name, content);
  }
  /// Classes of red and of blue pictures, each a bit larger than the one before.
  void write_pictures(int count, const std::string& below = "") const {
    for (int i = 0; i < count; ++i) {
      const std::string name = std::to_string(i) + (i % 2 == 0 ? ".jpg" : ".JPEG");
      write(below + "red/" + name, plain_jpeg(20 + i, 16, 255, 0, 0));
      write(below + "blue/" + name, plain_jpeg(16, 20 + i, 0, 0, 255));
    }
  }
  DataOptions options() const {
    DataOptions options;
    options.name = "image-folder";
    options.folder = folder_.path().string();
    options.image_size = 8;
    options.image_mean = "0";
    options.image_std = "1";
    return options;
  }
  std::string opening_error(const DataOptions& options) const {
    return error_text([&] { open_data(options); });
  }
  static Batch load(const Dataset& data, Pick pick) {
    Batch batch = data.make_batch(1, false);
    data.load(pick, 0, batch);
    return batch;
  }
  static torch::Tensor load_all(const std::shared_ptr<const Dataset>& data, int workers, int64_t epoch) {
    LoaderOptions loading;
    loading.workers = workers;
    loading.epoch = epoch;
    std::vector<std::vector<int64_t>> batches(3);
    for (int64_t i = 0; i < data->size(); ++i) batches[static_cast<size_t>(i % 3)].push_back(i);
    Loader loader(data, batches, loading);
    std::vector<torch::Tensor> parts;
    while (loader.has_next()) parts.push_back(loader.next().inputs[0]);
    return torch::cat(parts);
  }

  TempFolder folder_;
};

TEST_F(ImageFolder, HasAClassForEachFolderInTheOrderOfTheirNames) {
  write_pictures(5);
  const TrainTest data = open_data(options());
  const SampleTraits traits = data.train->traits();
  EXPECT_EQ(traits.kind, SampleKind::images);
  EXPECT_THAT(traits.shape, ElementsAre(3, 8, 8));
  EXPECT_EQ(traits.classes, 2);
  EXPECT_THAT(traits.class_names, ElementsAre("blue", "red"));
  EXPECT_EQ(data.train->size(), 8);
  EXPECT_EQ(data.test->size(), 2);  // a fifth of each class
  for (const auto& part : {data.train, data.test}) {
    for (int64_t i = 0; i < part->size(); ++i) {
      const Batch batch = load(*part, i);
      const bool is_red = batch.inputs[0][0][0].mean().item<float>() > 0.9;
      EXPECT_EQ(batch.target[0].item<int64_t>(), is_red ? 1 : 0);
    }
  }
}

TEST_F(ImageFolder, TakesFoldersForTrainingAndTestAsTheyAre) {
  write_pictures(3, "train/");
  write_pictures(1, "val/");
  const TrainTest data = open_data(options());
  EXPECT_EQ(data.train->size(), 6);
  EXPECT_EQ(data.test->size(), 2);
  DataOptions divided = options();
  divided.val_fraction = 0.5;
  EXPECT_THAT(opening_error(divided), AllOf(HasSubstr("--val-fraction"), HasSubstr("val is the test already")));
  write("val/green/1.jpg", plain_jpeg(9, 9, 0, 255, 0));
  EXPECT_THAT(opening_error(options()), AllOf(HasSubstr("val/green: a class that is not trained")));
}

TEST_F(ImageFolder, HoldsOutTheSameFilesWhateverElseIsThere) {
  write_pictures(10);
  DataOptions half = options();
  half.val_fraction = 0.5;
  EXPECT_EQ(open_data(half).test->size(), 10);
  const torch::Tensor before = load_all(open_data(options()).test, 0, 0);
  write("red/.hidden.jpg", "no picture");
  write("red/notes.txt", "no picture");
  EXPECT_TRUE(load_all(open_data(options()).test, 0, 0).equal(before));
}

TEST_F(ImageFolder, ShowsOtherPartsInEachEpochAndTheSameWithAnyNumberOfWorkers) {
  for (int i = 0; i < 4; ++i) {
    write("a/" + std::to_string(i) + ".jpg", jpeg_file(40, 30 + i, {}, wave));
    write("b/" + std::to_string(i) + ".jpg", jpeg_file(30, 40 + i, {}, wave));
  }
  const TrainTest data = open_data(options());
  const torch::Tensor alone = load_all(data.train, 0, 2);
  EXPECT_TRUE(load_all(data.train, 3, 2).equal(alone));
  EXPECT_FALSE(load_all(data.train, 0, 3).equal(alone));
  EXPECT_TRUE(load_all(data.test, 0, 2).equal(load_all(data.test, 0, 3)));
  DataOptions plain = options();
  plain.augment = false;
  const auto still = open_data(plain).train;
  EXPECT_FALSE(still->varies());
  EXPECT_TRUE(load_all(still, 0, 2).equal(load_all(still, 0, 3)));
}

TEST_F(ImageFolder, NormalizesByChannel) {
  write_pictures(2);
  DataOptions shifted = options();
  shifted.val_fraction = 0.5;
  shifted.image_mean = "0.5,0.25,0";
  shifted.image_std = "0.5,0.5,2";
  const torch::Tensor red = load(*open_data(shifted).train, 1).inputs[0][0];
  EXPECT_NEAR(red[0].mean().item<float>(), 1, 0.02);
  EXPECT_NEAR(red[1].mean().item<float>(), -0.5, 0.02);
  EXPECT_NEAR(red[2].mean().item<float>(), 0, 0.02);
  for (const char* wrong : {"", "0.5,0.5", "a", "0.5,0.5,0.5,", "1,2,3,4", "nan"}) {
    shifted.image_mean = wrong;
    EXPECT_THAT(opening_error(shifted), HasSubstr("--image-mean")) << wrong;
  }
  shifted.image_mean = "0";
  shifted.image_std = "0";
  EXPECT_THAT(opening_error(shifted), HasSubstr("above 0"));
}

TEST_F(ImageFolder, IsTheSameHoweverMuchOfItIsKept) {
  for (int i = 0; i < 5; ++i) {
    write("a/" + std::to_string(i) + ".jpg", jpeg_file(64, 48 + i, {}, wave));
    write("b/" + std::to_string(i) + ".jpg", jpeg_file(48, 64 + i, {}, wave));
  }
  const torch::Tensor uncached_test = load_all(open_data(options()).test, 0, 0);
  torch::Tensor first;
  for (const int64_t bytes : {int64_t{1}, int64_t{1500}, int64_t{1} << 20}) {
    DataOptions cached = options();
    cached.cache_bytes = bytes;
    const TrainTest data = open_data(cached);
    const torch::Tensor once = load_all(data.train, 0, 1);
    EXPECT_TRUE(load_all(data.train, 2, 1).equal(once)) << bytes;
    if (first.defined()) {
      EXPECT_TRUE(once.equal(first)) << bytes;
    }
    first = once;
    EXPECT_TRUE(load_all(data.test, 0, 0).equal(uncached_test)) << "the middle is that of the shrunk picture";
  }
  // What is kept is not read again.
  DataOptions cached = options();
  cached.cache_bytes = 1 << 20;
  const TrainTest data = open_data(cached);
  const torch::Tensor once = load_all(data.train, 0, 1);
  remove_tree(folder_.path() / "a");
  EXPECT_TRUE(load_all(data.train, 0, 1).equal(once));
}

TEST_F(ImageFolder, NamesADamagedPictureOrReplacesItByTheNextOne) {
  write_pictures(5);
  const TrainTest whole = open_data(options());
  std::string cut = read_file(folder_.path() / "blue/0.jpg");
  for (const char* file : {"blue/0.jpg", "blue/1.JPEG", "blue/2.jpg", "blue/3.JPEG", "blue/4.JPEG"})
    if (fs::exists(folder_.path() / file)) write(file, cut.substr(0, cut.size() / 2));
  write("blue/4.jpg", cut.substr(0, cut.size() / 2));
  EXPECT_THAT(error_text([&] { load_all(whole.train, 2, 0); }),
              AllOf(HasSubstr("blue/"), HasSubstr("not a JPEG that can be read"), HasSubstr("--skip-bad-samples")));
  DataOptions skipping = options();
  skipping.skip_bad_samples = true;
  const TrainTest data = open_data(skipping);
  EXPECT_EQ(data.train->size(), whole.train->size());  // all ranks agree on it, whatever they have read
  const torch::Tensor samples = load_all(data.train, 2, 0);
  EXPECT_GT(samples.select(1, 0).min().item<float>(), 0.9) << "red ones alone";
  EXPECT_EQ(data.train->bad_samples().size(), 4U);
  EXPECT_THAT(data.train->bad_samples()[0], HasSubstr("blue/"));
  EXPECT_TRUE(load_all(open_data(skipping).train, 0, 0).equal(samples));
  for (int i = 0; i < 5; ++i) write("red/" + std::to_string(i) + (i % 2 == 0 ? ".jpg" : ".JPEG"), "");
  EXPECT_THAT(error_text([&] { load_all(open_data(skipping).train, 0, 0); }), HasSubstr("look at these files"));
}

TEST_F(ImageFolder, RefusesWhatItWouldOtherwiseLeaveOutSilently) {
  EXPECT_THAT(opening_error(options()), HasSubstr("there is no folder in it"));
  write_pictures(5);
  write("red/x.webp", "RIFF");
  EXPECT_THAT(opening_error(options()), AllOf(HasSubstr("red/x.webp: not read"), HasSubstr("JPEG or PNG")));
  fs::remove(folder_.path() / "red/x.webp");
  fs::create_directories(folder_.path() / "green");
  EXPECT_THAT(opening_error(options()), HasSubstr("green: there are no JPEG or PNG pictures in it"));
  remove_tree(folder_.path() / "green");
  remove_tree(folder_.path() / "red");
  EXPECT_THAT(opening_error(options()), HasSubstr("only the folder blue"));
  DataOptions nowhere = options();
  nowhere.folder = "/nowhere";
  EXPECT_THAT(opening_error(nowhere), AllOf(HasSubstr("/nowhere"), HasSubstr("--data-path")));
  DataOptions other = options();
  other.name = "digits";
  EXPECT_THAT(opening_error(other), HasSubstr("--data-path has no meaning for --data digits: it is for mnist"));
  other.folder.clear();
  EXPECT_THAT(opening_error(other), HasSubstr("--image-size has no meaning for --data digits"));
}

TEST_F(ImageFolder, LoadsOneFileAsItsTestsDo) {
  write_pictures(5);
  write("red/0.jpg", jpeg_file(33, 21, {}, wave));
  DataOptions all = options();
  all.val_fraction = 0.8;
  const TrainTest data = open_data(all);
  Batch batch = data.test->make_batch(1, false);
  data.test->encode(read_file(folder_.path() / "red/0.jpg"), "red/0.jpg", 0, batch);
  const torch::Tensor one = batch.inputs[0];
  bool is_there = false;
  for (int64_t i = 0; i < data.test->size(); ++i) is_there = is_there || load(*data.test, i).inputs[0].equal(one);
  DataOptions plain = options();
  plain.augment = false;
  const auto train = open_data(plain).train;
  for (int64_t i = 0; i < train->size(); ++i) is_there = is_there || load(*train, i).inputs[0].equal(one);
  EXPECT_TRUE(is_there);
  EXPECT_EQ(data.test->label(0), "blue");
  EXPECT_THAT(error_text([&] { data.test->encode("no picture", "x.jpg", 0, batch); }), HasSubstr("x.jpg"));
}

}  // namespace
}  // namespace tutti::test
