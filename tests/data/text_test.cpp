#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <set>

#include "data/dataset.h"
#include "data/idx_files.h"
#include "data/loader.h"
#include "data/real_data.h"

namespace tutti::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using Numbers = std::vector<int64_t>;

constexpr int64_t kStart = 2;
constexpr int64_t kSeparator = 3;
constexpr int64_t kMask = 4;
constexpr int64_t kFirstWord = 5;
constexpr int64_t kDocuments = 3;
constexpr int64_t kSentences = 100;

/// One sample, with the words to be guessed put back.
struct Sample {
  Numbers tokens, restored, segments, attention, positions, words;
  int64_t target;
};

Sample load_sample(const Dataset& data, Pick pick) {
  Batch batch = data.make_batch(1, false);
  data.load(pick, 0, batch);
  const auto numbers = [&](size_t input) {
    const int64_t* const first = batch.inputs[input].data_ptr<int64_t>();
    return Numbers(first, first + batch.inputs[input].numel());
  };
  Sample sample{numbers(0), numbers(0), numbers(1), numbers(2), numbers(3), numbers(4), batch.target.item<int64_t>()};
  for (size_t i = 0; i < sample.words.size(); ++i)
    if (sample.words[i] != -100) sample.restored[static_cast<size_t>(sample.positions[i])] = sample.words[i];
  return sample;
}

/// Sentence s of document d is the word "w<d>x<s>" four times: each token tells where it is from.
class MaskedText : public ::testing::Test {
 protected:
  MaskedText() {
    std::string vocabulary = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
    for (int64_t d = 0; d < kDocuments; ++d) {
      std::string text;
      for (int64_t s = 0; s < kSentences; ++s) {
        const std::string word = "w" + std::to_string(d) + "x" + std::to_string(s);
        vocabulary += word + "\n";
        text += word + " " + word + " " + word + " " + word + "\n\n";
      }
      folder_.write("book" + std::to_string(d) + ".txt", text);
    }
    options_.name = "text";
    options_.folder = folder_.path().string();
    options_.vocabulary = folder_.write("vocabulary", vocabulary).string();
    options_.tokens = 16;
  }

  static int64_t document(int64_t token) { return (token - kFirstWord) / kSentences; }
  static int64_t sentence(int64_t token) { return (token - kFirstWord) % kSentences; }

  TempFolder folder_;
  DataOptions options_;
};

TEST_F(MaskedText, HoldsOutEveryTenthSample) {
  const TrainTest data = open_data(options_);
  // 16 tokens are 13 words: 4 sentences of 4 words a sample, 25 samples a document.
  EXPECT_EQ(data.train->size(), 68);
  EXPECT_EQ(data.test->size(), 7);
  EXPECT_EQ(data.train->traits().kind, SampleKind::masked_text);
  EXPECT_EQ(data.train->traits().shape, Numbers{16});
  EXPECT_EQ(data.train->traits().vocabulary, 305);
  EXPECT_EQ(data.train->traits().masked, 3);
  std::set<int64_t> seen[2];
  for (const auto& part : {data.train, data.test}) {
    for (int64_t i = 0; i < part->size(); ++i)
      for (int64_t epoch = 0; epoch < 5; ++epoch)
        for (const int64_t token : load_sample(*part, {i, epoch}).restored)
          if (token >= kFirstWord) seen[part == data.test ? 1 : 0].insert(token);
  }
  for (const int64_t token : seen[1]) EXPECT_EQ(seen[0].count(token), 0U) << token << " is in both";
}

TEST_F(MaskedText, PairsPartsThatFollowEachOtherOrComeFromDifferentDocuments) {
  const auto data = open_data(options_).train;
  int64_t next = 0;
  int64_t total = 0;
  for (int64_t i = 0; i < data->size(); ++i) {
    for (int64_t epoch = 0; epoch < 20; ++epoch, ++total) {
      const Sample sample = load_sample(*data, {i, epoch});
      ASSERT_EQ(sample.restored[0], kStart);
      const auto separator = std::find(sample.restored.begin(), sample.restored.end(), kSeparator);
      const auto end = std::find(separator + 1, sample.restored.end(), kSeparator);
      ASSERT_NE(end, sample.restored.end());
      ASSERT_GT(separator - sample.restored.begin(), 1);
      ASSERT_GT(end - separator, 1);
      const int64_t last = *(separator - 1);
      const int64_t first = *(separator + 1);
      if (sample.target == 0) {
        ++next;
        EXPECT_EQ(document(last), document(first));
        EXPECT_LE(sentence(first) - sentence(last), 4);
        EXPECT_GT(sentence(first), sentence(last));
      } else {
        EXPECT_NE(document(last), document(first));
      }
      for (size_t at = 0; at < sample.tokens.size(); ++at) {
        const auto place = sample.restored.begin() + static_cast<int64_t>(at);
        EXPECT_EQ(sample.attention[at], place <= end ? 1 : 0);
        EXPECT_EQ(sample.segments[at], place > separator && place <= end ? 1 : 0);
        EXPECT_EQ(sample.restored[at] == 0, place > end);
      }
    }
  }
  EXPECT_NEAR(static_cast<double>(next) / static_cast<double>(total), .5, .05);
}

TEST_F(MaskedText, HidesFifteenPercentOfTheWordsAsBertDoes) {
  options_.tokens = 64;
  const auto data = open_data(options_).train;
  int64_t masked = 0, kept = 0, replaced = 0;
  for (int64_t i = 0; i < data->size(); ++i) {
    for (int64_t epoch = 0; epoch < 50; ++epoch) {
      const Sample sample = load_sample(*data, {i, epoch});
      ASSERT_EQ(sample.words.size(), 10U);  // ceil(0.15 × 64)
      int64_t used = 0;
      for (const int64_t attention : sample.attention) used += attention;
      int64_t guessed = 0;
      for (size_t w = 0; w < sample.words.size(); ++w) {
        if (sample.words[w] == -100) {
          EXPECT_EQ(sample.positions[w], 0);
          continue;
        }
        ++guessed;
        EXPECT_GE(sample.words[w], kFirstWord);  // never a special token
        EXPECT_GT(sample.positions[w], w > 0 ? sample.positions[w - 1] : 0);
        const int64_t shown = sample.tokens[static_cast<size_t>(sample.positions[w])];
        ++(shown == kMask ? masked : shown == sample.words[w] ? kept : replaced);
      }
      EXPECT_EQ(guessed, std::llround(.15 * static_cast<double>(used)));
    }
  }
  const auto total = static_cast<double>(masked + kept + replaced);
  EXPECT_NEAR(static_cast<double>(masked) / total, .8, .02);
  EXPECT_NEAR(static_cast<double>(kept) / total, .1, .02);
  EXPECT_NEAR(static_cast<double>(replaced) / total, .1, .02);
}

TEST_F(MaskedText, VariesWithTheEpochAndTheSeedButTheTestDoesNotVary) {
  const TrainTest data = open_data(options_);
  EXPECT_EQ(load_sample(*data.train, {3, 1}).tokens, load_sample(*data.train, {3, 1}).tokens);
  EXPECT_NE(load_sample(*data.train, {3, 1}).tokens, load_sample(*data.train, {3, 2}).tokens);
  EXPECT_EQ(load_sample(*data.test, {3, 1}).tokens, load_sample(*data.test, {3, 2}).tokens);
  options_.seed = 5;
  EXPECT_NE(load_sample(*data.train, {3, 1}).tokens, load_sample(*open_data(options_).train, {3, 1}).tokens);
}

TEST_F(MaskedText, IsTheSameWithAnyNumberOfWorkers) {
  const auto data = open_data(options_).train;
  const auto epoch_with = [&](int workers) {
    LoaderOptions loading;
    loading.workers = workers;
    loading.epoch = 2;
    Loader loader(data, {{7, 1}, {0, 2}, {33, 4}, {6}}, loading);
    std::vector<torch::Tensor> parts;
    while (loader.has_next()) {
      const Batch batch = loader.next();
      parts.push_back(torch::cat(batch.inputs, 1));
    }
    return torch::cat(parts);
  };
  const torch::Tensor alone = epoch_with(0);
  EXPECT_TRUE(epoch_with(1).equal(alone));
  EXPECT_TRUE(epoch_with(4).equal(alone));
}

TEST_F(MaskedText, NamesWhatIsWrongWithItsFiles) {
  const auto opening_error = [&] { return error_text([&] { open_data(options_); }); };
  folder_.write("book9.txt", " \n");
  EXPECT_THAT(opening_error(), AllOf(HasSubstr("book9.txt"), HasSubstr("holds no text")));
  fs::remove(folder_.path() / "book9.txt");
  options_.tokens = 4000;
  EXPECT_THAT(opening_error(), AllOf(HasSubstr(folder_.path().string()), HasSubstr("3 samples of 4000 tokens")));
  options_.tokens = 7;
  EXPECT_THAT(opening_error(), HasSubstr("--tokens is 7"));
  options_.tokens = 16;
  options_.vocabulary = folder_.write("bad", "the\n").string();
  EXPECT_THAT(opening_error(), AllOf(HasSubstr("bad: a vocabulary of 1 tokens"), HasSubstr("[MASK]")));
  options_.vocabulary = "/nowhere/vocab.txt";
  EXPECT_THAT(opening_error(), HasSubstr("/nowhere/vocab.txt"));
  for (const char* name : {"book0.txt", "book1.txt", "book2.txt"}) fs::remove(folder_.path() / name);
  options_.vocabulary = folder_.path() / "vocabulary";
  EXPECT_THAT(opening_error(), AllOf(HasSubstr(folder_.path().string()), HasSubstr("no *.txt files")));
}

TEST_F(MaskedText, OfRealBooksIsTokenizedInSeconds) {
  TUTTI_REAL_DATA(books, "gutenberg");
  TUTTI_REAL_DATA(vocabulary, "bert-vocab");
  options_ = {};
  options_.name = "gutenberg";
  options_.folder = books.string();
  options_.vocabulary = (vocabulary / "vocab.txt").string();
  const auto start = std::chrono::steady_clock::now();
  const TrainTest data = open_data(options_);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));  // half a second without sanitizers
  EXPECT_EQ(data.train->traits().vocabulary, 30522);
  EXPECT_GT(data.train->size(), 15000);
  EXPECT_NEAR(static_cast<double>(data.test->size()) / static_cast<double>(data.train->size()), 1 / 9., .001);
}

}  // namespace
}  // namespace tutti::test
