#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/dataset.h"
#include "data/idx_files.h"

namespace tutti::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Batch load(const Dataset& data, int64_t count) {
  Batch batch = data.make_batch(count, false);
  for (int64_t i = 0; i < count; ++i) data.load(i, i, batch);
  return batch;
}

bool is_within(const torch::Tensor& tensor, int64_t low, int64_t high) {
  return tensor.min().item<int64_t>() >= low && tensor.max().item<int64_t>() < high;
}

TEST(Synthetic, ImagesHaveTheShapeAskedForAndEveryClass) {
  const TrainTest data = make_synthetic({SampleKind::images, {3, 8, 9}, 4, 0, 0}, 100, 20, 1);
  EXPECT_EQ(data.train->size(), 100);
  EXPECT_EQ(data.test->size(), 20);
  const Batch batch = load(*data.train, 100);
  EXPECT_EQ(batch.inputs[0].sizes(), (torch::IntArrayRef{100, 3, 8, 9}));
  EXPECT_NEAR(batch.inputs[0].mean().item<double>(), 0, .05);
  EXPECT_NEAR(batch.inputs[0].std().item<double>(), 1, .05);
  for (int64_t c = 0; c < 4; ++c) EXPECT_GT(batch.target.eq(c).sum().item<int64_t>(), 10);
}

TEST(Synthetic, MasksAreZerosAndOnes) {
  const TrainTest data = make_synthetic({SampleKind::segmentation, {3, 8, 8}, 0, 0, 0}, 10, 10, 1);
  const Batch batch = load(*data.train, 10);
  EXPECT_EQ(batch.target.sizes(), (torch::IntArrayRef{10, 1, 8, 8}));
  EXPECT_TRUE(batch.target.mul(1 - batch.target).eq(0).all().item<bool>());
  EXPECT_GE(batch.inputs[0].min().item<float>(), 0);
  EXPECT_LE(batch.inputs[0].max().item<float>(), 1);
}

TEST(Synthetic, SentencesAreTokensBelowTheVocabulary) {
  const Batch batch = load(*make_synthetic({SampleKind::sentences, {12}, 5, 50, 0}, 20, 1, 1).train, 20);
  EXPECT_EQ(batch.inputs[0].sizes(), (torch::IntArrayRef{20, 12}));
  EXPECT_TRUE(is_within(batch.inputs[0], 1, 50));
  EXPECT_TRUE(is_within(batch.target, 0, 5));
}

TEST(Synthetic, MaskedTextHasPositionsInRangeAndAllDifferent) {
  const Batch batch = load(*make_synthetic({SampleKind::masked_text, {16}, 0, 50, 3}, 20, 1, 1).train, 20);
  ASSERT_EQ(batch.inputs.size(), 5U);
  EXPECT_TRUE(is_within(batch.inputs[0], 1, 50));
  EXPECT_TRUE(is_within(batch.inputs[1], 0, 2));
  EXPECT_TRUE(is_within(batch.inputs[2], 1, 2));
  EXPECT_EQ(batch.inputs[3].sizes(), (torch::IntArrayRef{20, 3}));
  EXPECT_TRUE(is_within(batch.inputs[3], 0, 16));
  EXPECT_TRUE(is_within(batch.inputs[4], 0, 50));
  EXPECT_GT(batch.inputs[3].diff(1, 1).min().item<int64_t>(), 0);
  EXPECT_TRUE(is_within(batch.target, 0, 2));
}

TEST(Synthetic, IsMadeOnceFromItsSeed) {
  const SampleTraits traits{SampleKind::images, {1, 4, 4}, 10, 0, 0};
  const Batch batch = load(*make_synthetic(traits, 1000, 1, 1).train, 1000);
  EXPECT_TRUE(load(*make_synthetic(traits, 1000, 1, 1).train, 1000).inputs[0].equal(batch.inputs[0]));
  EXPECT_FALSE(load(*make_synthetic(traits, 1000, 1, 2).train, 1000).inputs[0].equal(batch.inputs[0]));
  EXPECT_TRUE(batch.inputs[0][0].equal(batch.inputs[0][256]));  // a pool of 256, over and over
  EXPECT_FALSE(batch.inputs[0][0].equal(batch.inputs[0][1]));
}

TEST(Synthetic, CounterpartsHaveThePublishedShapes) {
  const auto traits = [](const char* name) {
    DataOptions options;
    options.name = name;
    options.train_size = options.test_size = 4;
    return open_data(options).train->traits();
  };
  EXPECT_EQ(traits("synthetic-imagenet").shape, (std::vector<int64_t>{3, 224, 224}));
  EXPECT_EQ(traits("synthetic-imagenet").classes, 1000);
  EXPECT_EQ(traits("synthetic-mnist").shape, (std::vector<int64_t>{1, 28, 28}));
  EXPECT_EQ(traits("synthetic-segmentation").shape, (std::vector<int64_t>{3, 256, 256}));
  EXPECT_EQ(traits("synthetic-sst5").shape, std::vector<int64_t>{256});
  EXPECT_EQ(traits("synthetic-text").shape, std::vector<int64_t>{64});
  EXPECT_EQ(traits("synthetic-text").vocabulary, 30522);
}

TEST(Synthetic, MakesWhatTheModelTakesOrSaysThatItCannotKnow) {
  DataOptions options;
  options.name = "synthetic";
  EXPECT_THAT(error_text([&] { open_data(options); }), HasSubstr("synthetic-imagenet"));
  options.traits = SampleTraits{SampleKind::sentences, {7}, 3, 20, 0};
  EXPECT_EQ(open_data(options).train->traits().shape, std::vector<int64_t>{7});
  options.traits->vocabulary = 0;
  EXPECT_THAT(error_text([&] { open_data(options); }), AllOf(HasSubstr("shape [7]"), HasSubstr("0 tokens")));
}

TEST(Synthetic, TablesHaveFeaturesAndAClass) {
  const TrainTest data = make_synthetic({SampleKind::table, {5}, 3}, 20, 10, 1);
  Batch batch = data.train->make_batch(2, false);
  data.train->load(0, 0, batch);
  data.train->load(1, 1, batch);
  EXPECT_EQ(batch.inputs[0].sizes(), (torch::IntArrayRef{2, 5}));
  EXPECT_TRUE(batch.target.lt(3).all().item<bool>());
}

TEST(DataSets, SayWhichModelSuitsThem) {
  EXPECT_EQ(usual_model("sst5"), "transformer");
  EXPECT_EQ(usual_model("image-folder"), "resnet18");
  EXPECT_EQ(usual_model("csv"), "mlp");
  EXPECT_EQ(usual_model("synthetic"), "") << "which makes what the model takes";
  EXPECT_THROW(usual_model("sst"), UsageError);
}

}  // namespace
}  // namespace tutti::test
