#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tutti {

/// The tokens of a WordPiece vocabulary file, one a line; a token's number is its line, from 0.
class Vocabulary {
 public:
  /// Throws Error naming file and line for a token that is there twice or empty, and naming the special tokens
  /// ([PAD], [UNK], [CLS], [SEP], [MASK]) that are missing. `name` is what it calls the file.
  Vocabulary(std::string content, const std::string& name);
  Vocabulary(const Vocabulary&) = delete;
  Vocabulary& operator=(const Vocabulary&) = delete;

  int32_t size() const { return static_cast<int32_t>(tokens_.size()); }
  std::string_view token(int32_t number) const { return tokens_[static_cast<size_t>(number)]; }
  /// The token's number, or -1.
  int32_t find(std::string_view token) const;

  int32_t padding = -1;
  int32_t unknown = -1;
  int32_t start = -1;      // [CLS]
  int32_t separator = -1;  // [SEP]
  int32_t mask = -1;

 private:
  const std::string content_;
  std::vector<std::string_view> tokens_;                   // parts of content_
  std::unordered_map<std::string_view, int32_t> numbers_;  // keys are parts of content_
};

/// Text to tokens as BERT's uncased models do it: lower case, no accents, words at spaces and punctuation; then each
/// word into the longest pieces that the vocabulary has, from left to right, those after the first marked with ##; a
/// word that cannot be made of pieces is one [UNK]. Bytes that are no UTF-8 are left out. One thread; remembers words.
class WordPiece {
 public:
  /// The vocabulary must outlive this.
  explicit WordPiece(const Vocabulary& vocabulary) : vocabulary_(vocabulary) {}

  /// Appends the tokens of `text` to `numbers`.
  void tokenize(std::string_view text, std::vector<int32_t>& numbers);

 private:
  void add_word(std::string_view word, std::vector<int32_t>& numbers);
  std::vector<int32_t> split_word(std::string_view word) const;

  const Vocabulary& vocabulary_;
  std::unordered_map<std::string, std::vector<int32_t>> known_words_;
};

}  // namespace tutti
