// SST-5: sentences of film reviews in five classes, from trees in which every phrase has one.
//
// Words are lower-cased (ASCII) and numbered by how often the training sentences use them, see number_words().

#include <algorithm>
#include <memory>
#include <unordered_map>

#include "data/folders.h"
#include "data/sources.h"
#include "data/treebank_words.h"
#include "data/trees.h"
#include "data/words.h"
#include "tutti/error.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

constexpr int kSentiments = 5;

void lower_case(std::vector<LabelledTree>& trees) {
  for (LabelledTree& tree : trees) {
    for (std::string& token : tree.tokens) {
      for (char& c : token) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
  }
}

WordNumbers number_words_of(const std::vector<LabelledTree>& trees) {
  std::unordered_map<std::string, int64_t> uses;
  for (const LabelledTree& tree : trees) {
    for (const std::string& token : tree.tokens) ++uses[token];
  }
  return number_words(uses);
}

std::shared_ptr<WordSamples> make_samples(const std::vector<LabelledTree>& trees,
                                          const std::shared_ptr<const WordCoder>& coder, int64_t length, bool phrases) {
  std::vector<int32_t> words;
  std::vector<WordSample> samples;
  for (const LabelledTree& tree : trees) {
    const auto first = static_cast<int64_t>(words.size());
    for (const std::string& token : tree.tokens) words.push_back(coder->number_of(token));
    for (const Phrase& phrase : tree.phrases) {
      samples.push_back({first + phrase.begin, first + phrase.end, phrase.label});
      if (!phrases) break;  // the first is the sentence
    }
  }
  return std::make_shared<WordSamples>(
      "sst5", length, std::vector<std::string>{"very negative", "negative", "neutral", "positive", "very positive"},
      coder, std::move(words), std::move(samples));
}

}  // namespace

TrainTest open_sst5(const DataOptions& options) {
  const fs::path folder = require_data_folder(
      options.folder, "sst5",
      "Put train.txt, dev.txt and test.txt of the Stanford Sentiment Treebank (PTB trees) there: `tutti data get sst5` "
      "does, or name their folder with --data-path or its parent with $TUTTI_DATA.");
  std::vector<LabelledTree> train = read_trees(folder / "train.txt", kSentiments);
  std::vector<LabelledTree> test = read_trees(folder / "test.txt", kSentiments);
  lower_case(train);
  lower_case(test);
  const auto coder = std::make_shared<const WordCoder>(WordCoder{number_words_of(train), treebank_words});
  const int64_t length = options.tokens > 0 ? options.tokens : kDefaultTokens;
  return {make_samples(train, coder, length, options.phrases), make_samples(test, coder, length, /*phrases=*/false)};
}

}  // namespace tutti
