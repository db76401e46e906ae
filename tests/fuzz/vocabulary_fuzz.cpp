#include "data/documents.h"
#include "data/wordpiece.h"
#include "fuzz/fuzz.h"

namespace tutti::fuzz {
namespace {

const std::string kSpecial = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";

}  // namespace

/// The input as a vocabulary; and, behind the special tokens, as one that tokenizes itself.
static std::string fuzz_vocabulary(std::string_view input) {
  return outcome([&] { Vocabulary(std::string(input), "v"); }) + outcome([&] {
           const Vocabulary vocabulary(kSpecial + std::string(input), "v");
           WordPiece word_piece(vocabulary);
           std::vector<int32_t> numbers;
           for (const std::string_view sentence : split_sentences(input)) word_piece.tokenize(sentence, numbers);
           for (const int32_t number : numbers)
             if (number < 0 || number >= vocabulary.size()) throw std::logic_error("a token beyond the vocabulary");
         });
}

static std::vector<std::string> vocabulary_seeds() {
  return {kSpecial + "the\n##s\n",           "un\n##able\n##a\nx", "É“日\n\xff\xc3",
          "One. Two! Mr. A. Three?\n\nFour", "\xf0\x9f\x98\x80",   "\r\n\n\n"};
}

static const Target kVocabulary("vocabulary", fuzz_vocabulary, vocabulary_seeds);

}  // namespace tutti::fuzz
