#include "data/words.h"

#include <algorithm>
#include <utility>

#include "data/unicode.h"
#include "tutti/error.h"

namespace tutti {

WordNumbers number_words(const std::unordered_map<std::string, int64_t>& uses, size_t most) {
  constexpr int64_t kLeastUses = 2;
  std::vector<std::pair<int64_t, std::string>> frequent;
  for (const auto& [word, count] : uses) {
    if (count >= kLeastUses) frequent.emplace_back(-count, word);
  }
  std::sort(frequent.begin(), frequent.end());
  if (frequent.size() > most) frequent.resize(most);
  WordNumbers numbers;
  int32_t next = kUnknownWord + 1;
  for (const auto& [count, word] : frequent) numbers[word] = next++;
  return numbers;
}

std::vector<std::string> split_words(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  const auto end_word = [&] {
    if (!word.empty()) words.push_back(std::move(word));
    word.clear();
  };
  for (size_t at = 0; at < text.size();) {
    const char32_t c = next_character(text, at);
    const CharacterKind kind = kind_of(c);
    if (kind == CharacterKind::kIgnored) continue;
    if (kind != CharacterKind::kLetter) end_word();
    if (kind == CharacterKind::kSpace) continue;
    append_utf8(fold_case(c), word);
    if (kind != CharacterKind::kLetter) end_word();
  }
  end_word();
  return words;
}

int32_t WordCoder::number_of(const std::string& word) const {
  const auto found = numbers.find(word);
  return found == numbers.end() ? kUnknownWord : found->second;
}

WordSamples::WordSamples(std::string name, int64_t length, std::vector<std::string> class_names,
                         std::shared_ptr<const WordCoder> coder, std::vector<int32_t> words,
                         std::vector<WordSample> samples)
    : name_(std::move(name)),
      length_(length),
      class_names_(std::move(class_names)),
      coder_(std::move(coder)),
      words_(std::move(words)),
      samples_(std::move(samples)) {}

SampleTraits WordSamples::traits() const {
  SampleTraits traits{
      SampleKind::sentences, {length_}, static_cast<int64_t>(class_names_.size()), coder_->vocabulary(), 0};
  traits.class_names = class_names_;
  return traits;
}

void WordSamples::load(Pick pick, int64_t row, Batch& batch) const {
  const WordSample& sample = samples_[static_cast<size_t>(pick.index)];
  store(words_.data() + sample.begin, sample.end - sample.begin, row, batch);
  batch.target.data_ptr<int64_t>()[row] = sample.label;
}

void WordSamples::encode(std::string_view content, const std::string& input, int64_t row, Batch& batch) const {
  std::vector<int32_t> words;
  for (const std::string& word : coder_->split(content)) words.push_back(coder_->number_of(word));
  if (words.empty()) throw Error("{}: has no words", input);
  store(words.data(), static_cast<int64_t>(words.size()), row, batch);
  batch.target.data_ptr<int64_t>()[row] = 0;
}

void WordSamples::store(const int32_t* words, int64_t count, int64_t row, Batch& batch) const {
  int64_t* const to = batch.inputs[0].data_ptr<int64_t>() + row * length_;
  const int64_t used = std::min(count, length_);
  std::copy_n(words, used, to);
  std::fill(to + used, to + length_, kPaddingWord);
}

}  // namespace tutti
