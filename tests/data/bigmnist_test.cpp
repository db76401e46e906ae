#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "data/dataset.h"
#include "data/deform.h"
#include "data/idx_files.h"
#include "data/loader.h"
#include "data/real_data.h"

namespace tutti::test {
namespace {

using Image = std::array<uint8_t, 784>;

/// A bar with a foot, off the middle: no symmetry hides a mistake.
Image drawing() {
  Image image{};
  for (int row = 6; row < 22; ++row) image[row * 28 + 12] = image[row * 28 + 13] = 250;
  for (int column = 12; column < 20; ++column) image[21 * 28 + column] = 200;
  return image;
}

Image deformed(const Image& image, uint64_t key) {
  Image result;
  deform_digit(image.data(), PortableRandom(key), result.data());
  return result;
}

int64_t sum(const Image& image) {
  int64_t total = 0;
  for (const uint8_t pixel : image) total += pixel;
  return total;
}

TEST(DeformedDigits, AreTheSameOnEveryMachine) {
  int64_t checksum = 0;
  for (uint64_t key = 0; key < 50; ++key) {
    const Image image = deformed(drawing(), key);
    for (size_t i = 0; i < image.size(); ++i) checksum += image[i] * static_cast<int64_t>(i + key);
  }
  EXPECT_EQ(checksum, 195472874);
}

TEST(DeformedDigits, KeepTheirInkAndStayInThePicture) {
  const auto ink = static_cast<double>(sum(drawing()));
  for (uint64_t key = 0; key < 500; ++key) {
    const Image image = deformed(drawing(), key);
    EXPECT_NEAR(static_cast<double>(sum(image)) / ink, 1, .5) << key;
    for (int i = 0; i < 28; ++i) EXPECT_EQ(image[i] + image[27 * 28 + i] + image[28 * i] + image[28 * i + 27], 0);
  }
}

TEST(DeformedDigits, DifferFromEachOther) {
  EXPECT_NE(deformed(drawing(), 1), deformed(drawing(), 2));
  EXPECT_NE(deformed(drawing(), 1), drawing());
  EXPECT_EQ(deformed(drawing(), 1), deformed(drawing(), 1));
}

/// Three training images and one test image.
DataOptions small_mnist(const TempFolder& folder, const std::string& name) {
  std::string pixels;
  const Image image = drawing();
  for (int i = 0; i < 3; ++i) pixels.append(image.begin(), image.end());
  folder.write("train-images-idx3-ubyte", idx_images(3, 28, 28, pixels));
  folder.write("train-labels-idx1-ubyte", idx_labels(3, "\x03\x09\x01"));
  folder.write("t10k-images-idx3-ubyte", idx_images(1, 28, 28, pixels.substr(2 * 784)));
  folder.write("t10k-labels-idx1-ubyte", idx_labels(1, "\x05"));
  DataOptions options;
  options.name = name;
  options.folder = folder.path().string();
  return options;
}

torch::Tensor load(const Dataset& data, Pick pick) {
  Batch batch = data.make_batch(1, false);
  data.load(pick, 0, batch);
  return batch.inputs[0].clone();
}

TEST(BigMnist, HoldsEachImage120TimesDifferently) {
  const TempFolder folder;
  const TrainTest data = open_data(small_mnist(folder, "bigmnist"));
  ASSERT_EQ(data.train->size(), 360);
  ASSERT_EQ(data.test->size(), 1);
  Batch batch = data.train->make_batch(360, false);
  for (int64_t i = 0; i < 360; ++i) data.train->load(i, i, batch);
  EXPECT_EQ(batch.target.eq(9).sum().item<int64_t>(), 120);
  const torch::Tensor flat = batch.inputs[0].flatten(1);
  const torch::Tensor distances = torch::cdist(flat, flat) + torch::eye(360) * 100;
  EXPECT_GT(distances.min().item<float>(), .5);
}

TEST(BigMnist, DependsOnIndexAndSeedButNotOnTheEpoch) {
  const TempFolder folder;
  DataOptions options = small_mnist(folder, "bigmnist");
  const TrainTest data = open_data(options);
  EXPECT_TRUE(load(*data.train, {7, 0}).equal(load(*data.train, {7, 3})));
  options.seed = 2;
  EXPECT_FALSE(load(*data.train, 7).equal(load(*open_data(options).train, 7)));
}

TEST(BigMnist, CanBeCutShort) {
  const TempFolder folder;
  DataOptions options = small_mnist(folder, "bigmnist");
  options.train_size = 100;
  EXPECT_EQ(open_data(options).train->size(), 100);
}

TEST(Mnist, AugmentedVariesWithTheEpochWhileItsTestDoesNot) {
  const TempFolder folder;
  DataOptions options = small_mnist(folder, "mnist");
  const TrainTest plain = open_data(options);
  options.augment = true;
  const TrainTest varied = open_data(options);
  EXPECT_TRUE(load(*plain.train, {1, 0}).equal(load(*plain.train, {1, 1})));
  EXPECT_FALSE(load(*varied.train, {1, 0}).equal(load(*varied.train, {1, 1})));
  EXPECT_TRUE(load(*varied.train, {1, 1}).equal(load(*varied.train, {1, 1})));
  EXPECT_TRUE(load(*varied.test, {0, 0}).equal(load(*plain.test, {0, 1})));
}

TEST(BigMnist, IsSevenMillionImagesOfTheRealOne) {
  TUTTI_REAL_DATA(folder, "mnist");
  DataOptions options;
  options.name = "bigmnist";
  options.folder = folder.string();
  const TrainTest data = open_data(options);
  EXPECT_EQ(data.train->size(), 7'200'000);
  EXPECT_EQ(data.test->size(), 10'000);
  // As dark and as varied as MNIST, whose mean is 0 and whose deviation is 1 by its normalization.
  Batch batch = data.train->make_batch(6000, false);
  for (int64_t i = 0; i < 6000; ++i) data.train->load(i * 1199, i, batch);
  EXPECT_NEAR(batch.inputs[0].mean().item<double>(), 0, .03);
  EXPECT_NEAR(batch.inputs[0].std().item<double>(), 1, .1);
}

}  // namespace
}  // namespace tutti::test
