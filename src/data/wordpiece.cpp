#include "data/wordpiece.h"

#include <algorithm>

#include "data/unicode.h"
#include "tutti/error.h"

namespace tutti {
namespace {

constexpr size_t kLongestWord = 100;  // characters; longer ones are [UNK], as with BERT

bool is_inside_character(char byte) { return (static_cast<uint8_t>(byte) & 0xc0) == 0x80; }

}  // namespace

Vocabulary::Vocabulary(std::string content, const std::string& name) : content_(std::move(content)) {
  for (size_t begin = 0; begin < content_.size();) {
    const size_t end = std::min(content_.find('\n', begin), content_.size());
    std::string_view token(content_.data() + begin, end - begin);
    begin = end + 1;
    if (!token.empty() && token.back() == '\r') token.remove_suffix(1);
    const size_t line = tokens_.size() + 1;
    if (token.empty()) throw Error("{}:{}: an empty line; a vocabulary has a token on each", name, line);
    const auto [earlier, is_new] = numbers_.emplace(token, static_cast<int32_t>(line - 1));
    if (!is_new) throw Error("{}:{}: the token '{}' is on line {} already", name, line, token, earlier->second + 1);
    tokens_.push_back(token);
  }
  std::string missing;
  const auto special = [&](const char* token) {
    if (find(token) < 0) missing += (missing.empty() ? "" : ", ") + std::string(token);
    return find(token);
  };
  padding = special("[PAD]");
  unknown = special("[UNK]");
  start = special("[CLS]");
  separator = special("[SEP]");
  mask = special("[MASK]");
  if (!missing.empty()) {
    throw Error("{}: a vocabulary of {} tokens without {}; use one made for BERT, one token a line", name,
                tokens_.size(), missing);
  }
}

int32_t Vocabulary::find(std::string_view token) const {
  const auto found = numbers_.find(token);
  return found == numbers_.end() ? -1 : found->second;
}

void WordPiece::tokenize(std::string_view text, std::vector<int32_t>& numbers) {
  std::string word;
  const auto end_word = [&] {
    if (!word.empty()) add_word(word, numbers);
    word.clear();
  };
  for (size_t at = 0; at < text.size();) {
    const char32_t c = next_character(text, at);
    switch (kind_of(c)) {
      case CharacterKind::kLetter:
        append_utf8(fold_case(c), word);
        break;
      case CharacterKind::kSpace:
        end_word();
        break;
      case CharacterKind::kPunctuation:
      case CharacterKind::kIdeograph:
        end_word();
        append_utf8(fold_case(c), word);
        end_word();
        break;
      case CharacterKind::kIgnored:
        break;
    }
  }
  end_word();
}

void WordPiece::add_word(std::string_view word, std::vector<int32_t>& numbers) {
  std::string key(word);
  auto found = known_words_.find(key);
  if (found == known_words_.end()) found = known_words_.emplace(std::move(key), split_word(word)).first;
  numbers.insert(numbers.end(), found->second.begin(), found->second.end());
}

std::vector<int32_t> WordPiece::split_word(std::string_view word) const {
  size_t characters = 0;
  for (const char byte : word) characters += is_inside_character(byte) ? 0 : 1;
  if (characters > kLongestWord) return {vocabulary_.unknown};
  std::vector<int32_t> pieces;
  std::string piece;
  for (size_t begin = 0; begin < word.size();) {
    size_t end = word.size();
    int32_t number = -1;
    for (; end > begin; --end) {
      if (end < word.size() && is_inside_character(word[end])) continue;
      piece = begin > 0 ? "##" : "";
      piece += word.substr(begin, end - begin);
      number = vocabulary_.find(piece);
      if (number >= 0) break;
    }
    if (number < 0) return {vocabulary_.unknown};
    pieces.push_back(number);
    begin = end;
  }
  return pieces;
}

}  // namespace tutti
