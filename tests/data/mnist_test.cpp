#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "data/dataset.h"
#include "data/idx_files.h"
#include "data/real_data.h"

namespace tutti::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

DataOptions mnist_in(const fs::path& folder) {
  DataOptions options;
  options.name = "mnist";
  options.folder = folder.string();
  return options;
}

std::string opening_error(const DataOptions& options) {
  return error_text([&] { open_data(options); });
}

/// Two training images, all black and all white with one grey pixel, and one test image.
void write_tiny_mnist(const TempFolder& folder, const std::string& separator, bool zipped) {
  std::string pixels(2 * 784, '\0');
  pixels.replace(784, 784, std::string(784, '\xff'));
  pixels[784 + 28 + 2] = '\x80';
  const auto write = [&](const std::string& stem, const std::string& suffix, const std::string& content) {
    folder.write(stem + separator + suffix + (zipped ? ".gz" : ""), zipped ? gzipped(content) : content);
  };
  write("train-images", "idx3-ubyte", idx_images(2, 28, 28, pixels));
  write("train-labels", "idx1-ubyte", idx_labels(2, "\x03\x09"));
  write("t10k-images", "idx3-ubyte", idx_images(1, 28, 28, std::string(784, '\x01')));
  write("t10k-labels", "idx1-ubyte", idx_labels(1, "\x05"));
}

TEST(Mnist, NormalizesPixelsToMeanZeroAndDeviationOne) {
  const TempFolder folder;
  write_tiny_mnist(folder, "-", true);
  const TrainTest data = open_data(mnist_in(folder.path()));
  EXPECT_EQ(data.train->name(), "mnist");
  ASSERT_EQ(data.train->size(), 2);
  ASSERT_EQ(data.test->size(), 1);
  Batch batch = data.train->make_batch(2, false);
  data.train->load(1, 0, batch);
  data.train->load(0, 1, batch);
  EXPECT_EQ(batch.inputs[0].sizes(), (torch::IntArrayRef{2, 1, 28, 28}));
  EXPECT_EQ(batch.target[0].item<int64_t>(), 9);
  EXPECT_EQ(batch.target[1].item<int64_t>(), 3);
  EXPECT_FLOAT_EQ((batch.inputs[0][0][0][0][0].item<float>()), static_cast<float>((1 - 0.1307) / 0.3081));
  EXPECT_FLOAT_EQ((batch.inputs[0][0][0][1][2].item<float>()), static_cast<float>((128 / 255.0 - 0.1307) / 0.3081));
  EXPECT_FLOAT_EQ((batch.inputs[0][1].max().item<float>()), static_cast<float>(-0.1307 / 0.3081));
}

TEST(Mnist, AcceptsTheNamesThatFilesAreDistributedWith) {
  for (const std::string separator : {"-", "."}) {
    for (const bool zipped : {false, true}) {
      const TempFolder folder;
      write_tiny_mnist(folder, separator, zipped);
      EXPECT_EQ(open_data(mnist_in(folder.path())).train->size(), 2) << separator << zipped;
    }
  }
}

TEST(Mnist, FindsItsFolderThroughTheEnvironment) {
  const TempFolder folder;
  const char* const before = std::getenv("TUTTI_DATA");
  const std::string kept = before != nullptr ? before : "";
  fs::create_directory(folder.path() / "files");
  const TempFolder files;
  write_tiny_mnist(files, "-", true);
  fs::create_directory_symlink(files.path(), folder.path() / "mnist");
  setenv("TUTTI_DATA", folder.path().c_str(), 1);
  EXPECT_EQ(open_data(mnist_in("")).train->size(), 2);
  before != nullptr ? setenv("TUTTI_DATA", kept.c_str(), 1) : unsetenv("TUTTI_DATA");
}

TEST(Mnist, SaysWhereItLookedAndWhatToPutThere) {
  const TempFolder folder;
  EXPECT_THAT(opening_error(mnist_in(folder.path())),
              AllOf(HasSubstr(folder.path().string()), HasSubstr("train-images-idx3-ubyte"),
                    HasSubstr("t10k-labels-idx1-ubyte"), HasSubstr("--data digits")));
}

TEST(Mnist, NamesTheOneFileThatIsMissing) {
  const TempFolder folder;
  write_tiny_mnist(folder, "-", true);
  fs::remove(folder.path() / "t10k-labels-idx1-ubyte.gz");
  EXPECT_THAT(opening_error(mnist_in(folder.path())),
              AllOf(HasSubstr(folder.path().string()), HasSubstr("t10k-labels-idx1-ubyte")));
}

TEST(Mnist, RefusesImagesOfAnotherSize) {
  const TempFolder folder;
  write_tiny_mnist(folder, "-", false);
  folder.write("t10k-images-idx3-ubyte", idx_images(1, 2, 2, "abcd"));
  EXPECT_THAT(opening_error(mnist_in(folder.path())), AllOf(HasSubstr("2x2"), HasSubstr("28x28")));
}

TEST(Mnist, RefusesSizes) {
  DataOptions options = mnist_in("/nowhere");
  options.train_size = 10;
  EXPECT_THROW(open_data(options), UsageError);
}

TEST(Mnist, RealFilesHoldWhatTheirPageSays) {
  TUTTI_REAL_DATA(folder, "mnist");
  const TrainTest data = open_data(mnist_in(folder));
  EXPECT_EQ(data.train->size(), 60000);
  EXPECT_EQ(data.test->size(), 10000);
  Batch batch = data.train->make_batch(60000, false);
  for (int64_t i = 0; i < 60000; ++i) data.train->load(i, i, batch);
  // Its mean and deviation are what the normalization is made from.
  EXPECT_NEAR(batch.inputs[0].mean().item<double>(), 0, 1e-3);
  EXPECT_NEAR(batch.inputs[0].std().item<double>(), 1, 1e-3);
  // The first labels, and how often each digit occurs (LeCun's page and every tutorial).
  const std::vector<int64_t> first{5, 0, 4, 1, 9, 2, 1, 3, 1, 4};
  for (int64_t i = 0; i < 10; ++i) EXPECT_EQ(batch.target[i].item<int64_t>(), first[i]);
  const std::vector<int64_t> counts{5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949};
  for (int64_t i = 0; i < 10; ++i) EXPECT_EQ(batch.target.eq(i).sum().item<int64_t>(), counts[i]) << i;
}

TEST(Data, UnknownNamesAreAUsageErrorWithASuggestion) {
  DataOptions options;
  options.name = "mnits";
  EXPECT_THROW(open_data(options), UsageError);
  EXPECT_THAT(opening_error(options), AllOf(HasSubstr("mnits"), HasSubstr("mnist"), HasSubstr("digits")));
}

TEST(Data, NegativeSizesAreAUsageError) {
  DataOptions options;
  options.test_size = -1;
  EXPECT_THROW(open_data(options), UsageError);
}

}  // namespace
}  // namespace tutti::test
