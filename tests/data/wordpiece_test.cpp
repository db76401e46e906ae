#include "data/wordpiece.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "data/documents.h"
#include "data/idx_files.h"
#include "data/real_data.h"
#include "data/unicode.h"

namespace tutti::test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kSpecial = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";

std::vector<std::string> pieces(const Vocabulary& vocabulary, const std::string& text) {
  std::vector<int32_t> numbers;
  WordPiece(vocabulary).tokenize(text, numbers);
  std::vector<std::string> result;
  for (const int32_t number : numbers) result.emplace_back(vocabulary.token(number));
  return result;
}

std::string vocabulary_error(const std::string& content) {
  return error_text([&] { Vocabulary(content, "v.txt"); });
}

TEST(Vocabulary, NumbersTokensByTheirLineWithAnyLineEnds) {
  const Vocabulary vocabulary(kSpecial + "the\r\n##s", "v.txt");
  EXPECT_EQ(vocabulary.size(), 7);
  EXPECT_EQ(vocabulary.find("the"), 5);
  EXPECT_EQ(vocabulary.find("##s"), 6);
  EXPECT_EQ(vocabulary.find("a"), -1);
  EXPECT_EQ(vocabulary.mask, 4);
}

TEST(Vocabulary, NamesTheSpecialTokensItLacks) {
  EXPECT_THAT(vocabulary_error("[PAD]\n[UNK]\nthe\n"),
              AllOf(HasSubstr("v.txt: a vocabulary of 3 tokens without [CLS], [SEP], [MASK]")));
  EXPECT_THAT(vocabulary_error(""), HasSubstr("0 tokens without [PAD]"));
}

TEST(Vocabulary, NamesTheLineOfATokenThatIsThereTwiceOrEmpty) {
  EXPECT_EQ(vocabulary_error(kSpecial + "the\na\nthe\n"), "v.txt:8: the token 'the' is on line 6 already");
  EXPECT_THAT(vocabulary_error(kSpecial + "\na\n"), HasSubstr("v.txt:6: an empty line"));
}

TEST(WordPiece, TakesTheLongestPieceFromTheLeft) {
  const Vocabulary vocabulary(kSpecial + "un\nuna\n##aff\n##able\n##ff\n##a\n##ble\nrun\n##n\n##ing", "v.txt");
  EXPECT_THAT(pieces(vocabulary, "unaffable running"), ElementsAre("una", "##ff", "##able", "run", "##n", "##ing"));
}

TEST(WordPiece, MakesAWordUnknownAsAWhole) {
  const Vocabulary vocabulary(kSpecial + "un\n##able\nx\n##x\n", "v.txt");
  EXPECT_THAT(pieces(vocabulary, "un unzable able"), ElementsAre("un", "[UNK]", "[UNK]"));
  EXPECT_THAT(pieces(vocabulary, std::string(101, 'x')), ElementsAre("[UNK]"));
  EXPECT_EQ(pieces(vocabulary, std::string(100, 'x')).size(), 100U);
}

TEST(WordPiece, SplitsAtSpacesPunctuationAndIdeographs) {
  const Vocabulary vocabulary(kSpecial + "a\nb\n,\n.\n-\n“\n”\n日\n本", "v.txt");
  EXPECT_THAT(pieces(vocabulary, " a,b\t“A-b.”\n"), ElementsAre("a", ",", "b", "“", "a", "-", "b", ".", "”"));
  EXPECT_THAT(pieces(vocabulary, "a日本b"), ElementsAre("a", "日", "本", "b"));
}

TEST(WordPiece, LowersCaseAndTakesAccentsOff) {
  const Vocabulary vocabulary(kSpecial + "elan\nnaive\næsop\nstraße\nвои\nlodz\nłodz", "v.txt");
  EXPECT_THAT(pieces(vocabulary, "Élan NAÏVE nai\u0308ve Æsop Straße Вой Łódź"),
              ElementsAre("elan", "naive", "naive", "æsop", "straße", "вои", "łodz"));
}

TEST(WordPiece, LeavesOutBytesThatAreNoUtf8AndControlCharacters) {
  const Vocabulary vocabulary(kSpecial + "cesar\nab\n", "v.txt");
  EXPECT_THAT(pieces(vocabulary, "c\xe6sar"), ElementsAre("[UNK]"));  // "csar"
  EXPECT_THAT(pieces(vocabulary,
                     "a\xff\xc3"
                     "b a\xef\xbf\xbd"
                     "b a\x01"
                     "b a\xed\xa0\x80"
                     "b \xf0\x9f"),
              ElementsAre("ab", "ab", "ab", "ab"));
}

TEST(WordPiece, AgreesWithBertBaseUncased) {
  TUTTI_REAL_DATA(folder, "bert-vocab");
  const Vocabulary vocabulary(read_file(folder / "vocab.txt"), "vocab.txt");
  EXPECT_EQ(vocabulary.size(), 30522);
  const auto numbers = [&vocabulary](const std::string& text) {
    std::vector<int32_t> result;
    WordPiece(vocabulary).tokenize(text, result);
    return result;
  };
  // From the documentation of BERT's own and Hugging Face's code.
  EXPECT_THAT(numbers("Hello, my dog is cute"), ElementsAre(7592, 1010, 2026, 3899, 2003, 10140));
  EXPECT_THAT(numbers("Who was Jim Henson ?"), ElementsAre(2040, 2001, 3958, 27227, 1029));
  EXPECT_THAT(pieces(vocabulary, "Jim Henson was a puppeteer"),
              ElementsAre("jim", "henson", "was", "a", "puppet", "##eer"));
  EXPECT_THAT(numbers("embeddings"), ElementsAre(7861, 8270, 4667, 2015));
  EXPECT_THAT(pieces(vocabulary, "Here is the sentence I want embeddings for."),
              ElementsAre("here", "is", "the", "sentence", "i", "want", "em", "##bed", "##ding", "##s", "for", "."));
  EXPECT_THAT(pieces(vocabulary, "naïve CAFÉ"), ElementsAre("naive", "cafe"));
  EXPECT_THAT(numbers("[MASK]"), ElementsAre(1031, 7308, 1033));  // in a text it is three words
}

TEST(Sentences, EndWithMarksAndParagraphs) {
  EXPECT_THAT(split_sentences("One. Two!  Three?\nFour\n\nFive\n \n\nSix."),
              ElementsAre("One.", "Two!", "Three?", "Four", "Five", "Six."));
  EXPECT_THAT(split_sentences(""), ElementsAre());
}

TEST(Sentences, DoNotEndAfterTitlesInitialsNorBeforeSmallLetters) {
  EXPECT_THAT(split_sentences("Mr. J. Weston met Dr. Perry. \"Oh!\" said he. \"Why?\" He left."),
              ElementsAre("Mr. J. Weston met Dr. Perry.", "\"Oh!\" said he.", "\"Why?\"", "He left."));
  EXPECT_THAT(split_sentences("It cost 3.50 there. So said I. Yes."),
              ElementsAre("It cost 3.50 there.", "So said I.", "Yes."));
}

TEST(Utf8, GoesBothWays) {
  const std::string text = "aé€😀";
  std::string again;
  for (size_t at = 0; at < text.size();) append_utf8(next_character(text, at), again);
  EXPECT_EQ(again, text);
  size_t at = 0;
  EXPECT_EQ(next_character("\xc0\xaf", at), kReplacement);  // overlong
  EXPECT_EQ(at, 1U);
}

}  // namespace
}  // namespace tutti::test
