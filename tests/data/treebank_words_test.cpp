#include "data/treebank_words.h"

#include <gtest/gtest.h>

namespace tutti {
namespace {

using Words = std::vector<std::string>;

TEST(TreebankWords, TakeMarksAndShortenedWordsApart) {
  EXPECT_EQ(treebank_words("It's (not) bad."), (Words{"it", "'s", "-lrb-", "not", "-rrb-", "bad", "."}));
  EXPECT_EQ(treebank_words("Don't say \"never\"!"), (Words{"do", "n't", "say", "``", "never", "''", "!"}));
  EXPECT_EQ(treebank_words("well-made--but slow..."), (Words{"well-made", "--", "but", "slow", "..."}));
  EXPECT_EQ(treebank_words("A fine, touching film"), (Words{"a", "fine", ",", "touching", "film"}));
}

TEST(TreebankWords, LeaveWhatIsSplitAlreadyAsItIs) {
  const Words split{"it", "'s", "``", "good", "''", "--", "is", "n't", "-lrb-", "it", "-rrb-", "?", "..."};
  std::string text;
  for (const std::string& word : split) text += word + " ";
  EXPECT_EQ(treebank_words(text), split);
}

TEST(TreebankWords, AreNoneInSpacesAndOneInAMarkAlone) {
  EXPECT_EQ(treebank_words(" \t\n"), Words());
  EXPECT_EQ(treebank_words("'"), Words{"'"});
  EXPECT_EQ(treebank_words("."), Words{"."});
  EXPECT_EQ(treebank_words("----"), (Words{"--", "--"}));
}

}  // namespace
}  // namespace tutti
