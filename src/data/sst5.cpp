// SST-5: sentences of film reviews in five classes, from trees in which every phrase has one.
//
// Words are lower-cased (ASCII) and numbered by how often the training sentences use them; 0 is padding and 1 any word
// seen less than twice in training. Such rare words teach the network what an unknown word is worth: were each word of
// the training set known, number 1 would first occur in the test.

#include <algorithm>
#include <array>
#include <memory>
#include <unordered_map>

#include "data/folders.h"
#include "data/sources.h"
#include "data/treebank_words.h"
#include "data/trees.h"
#include "tutti/error.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

constexpr int kSentiments = 5;
const std::array<const char*, kSentiments> kSentimentNames = {"very negative", "negative", "neutral", "positive",
                                                              "very positive"};
constexpr int32_t kPadding = 0;
constexpr int32_t kUnknown = 1;
constexpr int64_t kLeastUses = 2;

using WordNumbers = std::unordered_map<std::string, int32_t>;

void lower_case(std::vector<LabelledTree>& trees) {
  for (LabelledTree& tree : trees) {
    for (std::string& token : tree.tokens) {
      for (char& c : token) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
  }
}

WordNumbers number_words(const std::vector<LabelledTree>& trees) {
  std::unordered_map<std::string, int64_t> uses;
  for (const LabelledTree& tree : trees) {
    for (const std::string& token : tree.tokens) ++uses[token];
  }
  std::vector<std::pair<int64_t, std::string>> frequent;
  for (const auto& [word, count] : uses) {
    if (count >= kLeastUses) frequent.emplace_back(-count, word);
  }
  std::sort(frequent.begin(), frequent.end());
  WordNumbers numbers;
  int32_t next = kUnknown + 1;
  for (const auto& [count, word] : frequent) numbers[word] = next++;
  return numbers;
}

class Sst5 : public Dataset {
 public:
  Sst5(const std::vector<LabelledTree>& trees, std::shared_ptr<const WordNumbers> numbers, int64_t length, bool phrases)
      : numbers_(std::move(numbers)),
        length_(length),
        vocabulary_(static_cast<int64_t>(numbers_->size()) + kUnknown + 1) {
    for (const LabelledTree& tree : trees) {
      const auto first = static_cast<int32_t>(words_.size());
      for (const std::string& token : tree.tokens) words_.push_back(number_of(token));
      for (const Phrase& phrase : tree.phrases) {
        samples_.push_back({first + phrase.begin, first + phrase.end, phrase.label});
        if (!phrases) break;  // the first is the sentence
      }
    }
  }

  const std::string& name() const override { return name_; }
  int64_t size() const override { return static_cast<int64_t>(samples_.size()); }
  SampleTraits traits() const override { return {SampleKind::sentences, {length_}, kSentiments, vocabulary_, 0}; }
  bool varies() const override { return false; }
  void load(Pick pick, int64_t row, Batch& batch) const override {
    const Phrase& sample = samples_[static_cast<size_t>(pick.index)];
    store(words_.data() + sample.begin, sample.end - sample.begin, row, batch);
    batch.target.data_ptr<int64_t>()[row] = sample.label;
  }
  void encode(std::string_view content, const std::string& input, int64_t row, Batch& batch) const override {
    std::vector<int32_t> words;
    for (const std::string& word : treebank_words(content)) words.push_back(number_of(word));
    if (words.empty()) throw Error("{}: has no words", input);
    store(words.data(), static_cast<int64_t>(words.size()), row, batch);
    batch.target.data_ptr<int64_t>()[row] = 0;
  }
  std::string label(int64_t number) const override { return kSentimentNames.at(static_cast<size_t>(number)); }

 private:
  int32_t number_of(const std::string& word) const {
    const auto found = numbers_->find(word);
    return found == numbers_->end() ? kUnknown : found->second;
  }

  void store(const int32_t* words, int64_t count, int64_t row, Batch& batch) const {
    int64_t* const to = batch.inputs[0].data_ptr<int64_t>() + row * length_;
    const int64_t used = std::min(count, length_);
    std::copy_n(words, used, to);
    std::fill(to + used, to + length_, kPadding);
  }

  const std::string name_ = "sst5";
  const std::shared_ptr<const WordNumbers> numbers_;
  const int64_t length_;
  const int64_t vocabulary_;
  std::vector<int32_t> words_;   // of all sentences, one after the other
  std::vector<Phrase> samples_;  // places in words_
};

}  // namespace

TrainTest open_sst5(const DataOptions& options) {
  const fs::path folder = require_data_folder(
      options.folder, "sst5",
      "Put train.txt, dev.txt and test.txt of the Stanford Sentiment Treebank (PTB trees) there: `tutti data get sst5` "
      "does, or name their folder with --data-folder or its parent with $TUTTI_DATA.");
  std::vector<LabelledTree> train = read_trees(folder / "train.txt", kSentiments);
  std::vector<LabelledTree> test = read_trees(folder / "test.txt", kSentiments);
  lower_case(train);
  lower_case(test);
  const auto numbers = std::make_shared<const WordNumbers>(number_words(train));
  const int64_t length = options.tokens > 0 ? options.tokens : kDefaultTokens;
  return {std::make_shared<Sst5>(train, numbers, length, options.phrases),
          std::make_shared<Sst5>(test, numbers, length, /*phrases=*/false)};
}

}  // namespace tutti
