#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/dataset.h"
#include "data/jpeg_files.h"
#include "data/png_files.h"
#include "data/tar_files.h"

namespace tutti::test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ImageShards : public ::testing::Test {
 protected:
  /// A tar file of red (0) and blue (1) pictures.
  static std::string shard(int count, const std::string& prefix) {
    std::string content;
    for (int i = 0; i < count; ++i) {
      const bool is_blue = i % 2 == 1;
      const std::string key = prefix + std::to_string(i);
      content += tar_member(key + ".jpg", plain_jpeg(12, 10, is_blue ? 0 : 255, 0, is_blue ? 255 : 0));
      content += tar_member(key + ".json", "{}") + tar_member(key + ".cls", is_blue ? "1" : "0\n");
    }
    return content + tar_end();
  }
  TrainTest open() const {
    DataOptions options;
    options.name = "image-shards";
    options.folder = folder_.path().string();
    options.image_size = 8;
    options.image_mean = "0";
    options.image_std = "1";
    return open_data(options);
  }
  std::string error() const {
    return error_text([&] { open(); });
  }

  TempFolder folder_;
};

TEST_F(ImageShards, AreThePicturesOfAllTarFilesWithTheirClasses) {
  folder_.write("0.tar", shard(6, "a/"));
  folder_.write("1.tar", shard(14, "b/"));
  const TrainTest data = open();
  EXPECT_EQ(data.train->size(), 16);
  EXPECT_EQ(data.test->size(), 4);
  EXPECT_THAT(data.train->traits().class_names, ElementsAre("0", "1"));
  for (const auto& part : {data.train, data.test}) {
    Batch batch = part->make_batch(1, false);
    for (int64_t i = 0; i < part->size(); ++i) {
      part->load({i, 3}, 0, batch);
      const bool is_red = batch.inputs[0][0][0].mean().item<float>() > 0.9;
      EXPECT_EQ(batch.target[0].item<int64_t>(), is_red ? 0 : 1);
    }
  }
  folder_.write("classes.txt", "red\r\nblue\n");
  EXPECT_THAT(open().train->traits().class_names, ElementsAre("red", "blue"));
  folder_.write("classes.txt", "red\n");
  EXPECT_THAT(error(), HasSubstr("classes.txt: 1 names"));
}

TEST_F(ImageShards, OfFoldersForTrainingAndTestAreTakenAsTheyAre) {
  for (const char* part : {"train", "val"}) fs::create_directories(folder_.path() / part);
  folder_.write("train/0.tar", shard(6, ""));
  folder_.write("val/0.tar", shard(4, ""));
  EXPECT_EQ(open().train->size(), 6);
  EXPECT_EQ(open().test->size(), 4);
}

TEST_F(ImageShards, NameWhatIsMissingOrDamaged) {
  EXPECT_THAT(error(), HasSubstr("holds no *.tar files"));
  folder_.write("0.tar", tar_member("a.jpg", "x") + tar_member("b.cls", "1"));
  EXPECT_THAT(error(), AllOf(HasSubstr("0.tar: a:"), HasSubstr("no .cls beside it")));
  folder_.write("0.tar", tar_member("a.cls", "1") + tar_member("b.cls", "1"));
  EXPECT_THAT(error(), AllOf(HasSubstr("0.tar: a:"), HasSubstr("a class without a picture")));
  folder_.write("0.tar", tar_member("a.jpg", "x") + tar_member("a.cls", "cat"));
  EXPECT_THAT(error(), HasSubstr("0.tar: a.cls: no class"));
  folder_.write("0.tar", tar_member("notes.txt", "x"));
  EXPECT_THAT(error(), HasSubstr("no KEY.jpg"));
  folder_.write("0.tar", shard(10, "").substr(0, 2000));
  EXPECT_THAT(error(), HasSubstr("0.tar: at byte"));
  std::string damaged = shard(10, "");
  for (size_t at = damaged.find("\xff\xda"); at != std::string::npos; at = damaged.find("\xff\xda", at + 1))
    damaged[at + 1] = '\0';  // no picture has its pixels
  folder_.write("0.tar", damaged);
  const TrainTest data = open();
  Batch batch = data.train->make_batch(1, false);
  EXPECT_THAT(error_text([&] { data.train->load(0, 0, batch); }),
              AllOf(HasSubstr("0.tar: "), HasSubstr(".jpg: not a JPEG")));
}

}  // namespace
}  // namespace tutti::test
