#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/dataset.h"

namespace tutti {

// Texts with a class each, as sequences of word numbers: 0 is padding, 1 any word that has no number of its own.
constexpr int32_t kPaddingWord = 0;
constexpr int32_t kUnknownWord = 1;

using WordNumbers = std::unordered_map<std::string, int32_t>;

/// Numbers from 2, by how often words are used, the most used first; none for those used once: such rare words teach
/// the network what an unknown word is worth. Were each word of the training set known, number 1 would first occur in
/// the test. At most `most` words get one.
WordNumbers number_words(const std::unordered_map<std::string, int64_t>& uses, size_t most = SIZE_MAX);

/// The words of a text: lower case, without accents, cut at spaces; each punctuation mark is a word.
std::vector<std::string> split_words(std::string_view text);

/// Part of the words of all samples, and its class.
struct WordSample {
  int64_t begin = 0;
  int64_t end = 0;
  int32_t label = 0;
};

/// How texts become numbers.
struct WordCoder {
  WordNumbers numbers;
  std::vector<std::string> (*split)(std::string_view text);

  int32_t number_of(const std::string& word) const;
  int64_t vocabulary() const { return static_cast<int64_t>(numbers.size()) + kUnknownWord + 1; }
};

class WordSamples : public Dataset {
 public:
  /// Longer samples than `length` words are cut, shorter ones padded.
  WordSamples(std::string name, int64_t length, std::vector<std::string> class_names,
              std::shared_ptr<const WordCoder> coder, std::vector<int32_t> words, std::vector<WordSample> samples);

  const std::string& name() const override { return name_; }
  int64_t size() const override { return static_cast<int64_t>(samples_.size()); }
  SampleTraits traits() const override;
  bool varies() const override { return false; }
  void load(Pick pick, int64_t row, Batch& batch) const override;
  void encode(std::string_view content, const std::string& input, int64_t row, Batch& batch) const override;

 private:
  void store(const int32_t* words, int64_t count, int64_t row, Batch& batch) const;

  const std::string name_;
  const int64_t length_;
  const std::vector<std::string> class_names_;
  const std::shared_ptr<const WordCoder> coder_;
  const std::vector<int32_t> words_;  // of all samples, one after the other
  const std::vector<WordSample> samples_;
};

}  // namespace tutti
