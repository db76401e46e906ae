#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/dataset.h"
#include "data/idx_files.h"
#include "data/real_data.h"

namespace tutti::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using Numbers = std::vector<int64_t>;

DataOptions sst5_in(const fs::path& folder) {
  DataOptions options;
  options.name = "sst5";
  options.folder = folder.string();
  return options;
}

Numbers tokens(const Dataset& data, int64_t index) {
  Batch batch = data.make_batch(1, false);
  data.load(index, 0, batch);
  const int64_t* const first = batch.inputs[0].data_ptr<int64_t>();
  return {first, first + batch.inputs[0].numel()};
}

int64_t label(const Dataset& data, int64_t index) {
  Batch batch = data.make_batch(1, false);
  data.load(index, 0, batch);
  return batch.target.item<int64_t>();
}

/// The words "good" (3 uses) and "a" (2) are frequent, "film" and "bad" are not.
void write_trees(const TempFolder& folder) {
  folder.write("train.txt", "(3 (2 A) (4 (3 Good) (2 good)))\n(1 (2 a) (0 (3 good) (1 (1 bad) (2 film))))\n");
  folder.write("test.txt", "(0 (2 never) (3 good))\n");
}

TEST(Sst5, NumbersWordsByHowOftenTrainingUsesThem) {
  const TempFolder folder;
  write_trees(folder);
  DataOptions options = sst5_in(folder.path());
  options.tokens = 5;
  const TrainTest data = open_data(options);
  EXPECT_EQ(data.train->size(), 2);
  EXPECT_EQ(data.train->traits().vocabulary, 4);
  EXPECT_EQ(data.train->traits().classes, 5);
  EXPECT_EQ(data.train->traits().kind, SampleKind::sentences);
  EXPECT_EQ(tokens(*data.train, 0), (Numbers{3, 2, 2, 0, 0}));
  EXPECT_EQ(tokens(*data.train, 1), (Numbers{3, 2, 1, 1, 0}));
  EXPECT_EQ(tokens(*data.test, 0), (Numbers{1, 2, 0, 0, 0}));
  EXPECT_EQ(label(*data.train, 0), 3);
  EXPECT_EQ(label(*data.train, 1), 1);
  EXPECT_EQ(label(*data.test, 0), 0);
}

TEST(Sst5, CutsLongSentences) {
  const TempFolder folder;
  write_trees(folder);
  DataOptions options = sst5_in(folder.path());
  options.tokens = 2;
  EXPECT_EQ(tokens(*open_data(options).train, 0), (Numbers{3, 2}));
}

TEST(Sst5, TrainsOnEveryPhraseIfToldToAndTestsOnSentencesAllTheSame) {
  const TempFolder folder;
  write_trees(folder);
  DataOptions options = sst5_in(folder.path());
  options.tokens = 3;
  options.phrases = true;
  const TrainTest data = open_data(options);
  ASSERT_EQ(data.train->size(), 5 + 7);
  EXPECT_EQ(data.test->size(), 1);
  EXPECT_EQ(tokens(*data.train, 2), (Numbers{2, 2, 0}));  // "Good good"
  EXPECT_EQ(label(*data.train, 2), 4);
  EXPECT_EQ(tokens(*data.train, 7), (Numbers{2, 1, 1}));  // "good bad film", of the second tree
  EXPECT_EQ(label(*data.train, 7), 0);
}

TEST(Sst5, SaysWhatToPutWhere) {
  EXPECT_THAT(error_text([] { open_data(sst5_in("/nowhere/trees")); }),
              AllOf(HasSubstr("/nowhere/trees"), HasSubstr("train.txt"), HasSubstr("tutti data get sst5")));
}

TEST(Sst5, RefusesOptionsOfOtherData) {
  DataOptions options = sst5_in("/nowhere");
  options.augment = true;
  EXPECT_THAT(error_text([&] { open_data(options); }), AllOf(HasSubstr("--augment"), HasSubstr("it is for mnist")));
  options = sst5_in("/nowhere");
  options.tokens = -3;
  EXPECT_THROW(open_data(options), UsageError);
}

TEST(Sst5, RealSentencesFitInto64Tokens) {
  TUTTI_REAL_DATA(folder, "sst5");
  const TrainTest data = open_data(sst5_in(folder));
  EXPECT_EQ(data.train->size(), 8544);
  EXPECT_EQ(data.test->size(), 2210);
  Batch batch = data.test->make_batch(2210, false);
  for (int64_t i = 0; i < 2210; ++i) data.test->load(i, i, batch);
  EXPECT_EQ(batch.inputs[0].ne(0).sum().item<int64_t>(), 42405);  // no token is cut off
  EXPECT_EQ(batch.inputs[0].ne(0).sum(1).max().item<int64_t>(), 56);
  EXPECT_LT(batch.inputs[0].max().item<int64_t>(), data.train->traits().vocabulary);
  EXPECT_LT(batch.inputs[0].eq(1).sum().item<double>(), 0.1 * 42405);  // most words are known
}

}  // namespace
}  // namespace tutti::test
