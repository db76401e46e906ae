#include "data/trees.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/idx_files.h"
#include "data/real_data.h"

namespace tutti::test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string parsing_error(const std::string& text) {
  return error_text([&] { parse_tree(text, 5); });
}

TEST(Trees, GiveTokensAndTheClassOfEveryPhrase) {
  const LabelledTree tree = parse_tree("(3 (2 A) (4 (3 good) (2 film)))", 5);
  EXPECT_THAT(tree.tokens, ElementsAre("A", "good", "film"));
  std::vector<std::vector<int>> phrases;
  for (const Phrase& phrase : tree.phrases) phrases.push_back({phrase.begin, phrase.end, phrase.label});
  EXPECT_THAT(phrases, ElementsAre(ElementsAre(0, 3, 3), ElementsAre(0, 1, 2), ElementsAre(1, 3, 4),
                                   ElementsAre(1, 2, 3), ElementsAre(2, 3, 2)));
}

TEST(Trees, MayBeASingleWordAndHaveSpacesAnywhere) {
  EXPECT_THAT(parse_tree(" ( 2  Yes ) \r", 5).tokens, ElementsAre("Yes"));
}

TEST(Trees, SayWhereTheyAreMalformed) {
  EXPECT_EQ(parsing_error("hello"), "column 1: a tree begins with '('");
  EXPECT_EQ(parsing_error(""), "column 1: a tree begins with '('");
  EXPECT_EQ(parsing_error("(2 (2 a) (2 b)"), "column 15: the tree ends before its last ')'");
  EXPECT_EQ(parsing_error("(2 a)) "), "column 6: text after the end of the tree");
  EXPECT_EQ(parsing_error("(5 a)"), "column 2: expected a class from 0 to 4 after '(', found '5'");
  EXPECT_EQ(parsing_error("((2 a) (2 b))"), "column 2: expected a class from 0 to 4 after '(', found ''");
  EXPECT_EQ(parsing_error("(2 (2 a) ())"), "column 11: expected a class from 0 to 4 after '(', found ''");
  EXPECT_EQ(parsing_error("(2 (2 ))"), "column 7: a phrase without a word");
  EXPECT_THAT(parsing_error("(2 a b)"), HasSubstr("column 6: a phrase holds one word"));
  EXPECT_THAT(parsing_error("(2 a (2 b))"), HasSubstr("column 6: a phrase holds one word"));
}

TEST(Trees, AsDeepAsALineIsLongAreAnErrorLikeAnyOther) {
  std::string deep;
  for (int i = 0; i < 1'000'000; ++i) deep += "(2";
  EXPECT_THAT(parsing_error(deep), HasSubstr("ends before"));
}

TEST(TreeFile, NamesFileAndLineOfAMalformedTree) {
  const TempFolder folder;
  const fs::path path = folder.write("train.txt", "(2 fine)\n\n(3 (2 cut) (2 off\n(1 (2 never) (1 read))\n");
  EXPECT_THAT(error_text([&] { read_trees(path, 5); }),
              AllOf(HasSubstr(path.string() + ":3: column "), HasSubstr("ends before its last ')'")));
}

TEST(TreeFile, RefusesAFileWithoutTreesAndAMissingOne) {
  const TempFolder folder;
  const fs::path path = folder.write("empty.txt", "\n \n");
  EXPECT_THAT(error_text([&] { read_trees(path, 5); }), AllOf(HasSubstr(path.string()), HasSubstr("no trees")));
  EXPECT_THAT(error_text([&] { read_trees("/nowhere/train.txt", 5); }), HasSubstr("/nowhere/train.txt"));
}

TEST(TreeFile, OfTheTreebankHoldsWhatItsPageSays) {
  TUTTI_REAL_DATA(folder, "sst5");
  const auto counts = [&](const char* name) {
    std::vector<int64_t> result(8, 0);  // trees, phrases, tokens, sentences of each class
    for (const LabelledTree& tree : read_trees(folder / name, 5)) {
      ++result[0];
      result[1] += static_cast<int64_t>(tree.phrases.size());
      result[2] += static_cast<int64_t>(tree.tokens.size());
      ++result[3 + static_cast<size_t>(tree.phrases[0].label)];
    }
    return result;
  };
  EXPECT_THAT(counts("train.txt"), ElementsAre(8544, 318582, 163563, 1092, 2218, 1624, 2322, 1288));
  EXPECT_THAT(counts("dev.txt"), ElementsAre(1101, 41447, 21274, 139, 289, 229, 279, 165));
  EXPECT_THAT(counts("test.txt"), ElementsAre(2210, 82600, 42405, 279, 633, 389, 510, 399));
}

}  // namespace
}  // namespace tutti::test
