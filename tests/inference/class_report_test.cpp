#include "inference/class_report.h"

#include <gtest/gtest.h>

namespace tutti {
namespace {

/// Ten cats, of which two pass for dogs; five dogs, all found; no bird, though one dog was taken for one.
Confusion animals() { return {{"cat", "dog", "bird"}, {8, 2, 0, 0, 4, 1, 0, 0, 0}}; }

TEST(ClassReport, ScoresEachClassByItsRowAndItsColumn) {
  const std::vector<ClassScore> scores = class_scores(animals());
  EXPECT_DOUBLE_EQ(scores[0].precision, 1);
  EXPECT_DOUBLE_EQ(scores[0].recall, 0.8);
  EXPECT_DOUBLE_EQ(scores[0].f1, 16.0 / 18);
  EXPECT_DOUBLE_EQ(scores[1].precision, 4.0 / 6);
  EXPECT_DOUBLE_EQ(scores[1].recall, 0.8);
  EXPECT_EQ(scores[1].support, 5);
  EXPECT_EQ(scores[2].precision, 0);
  EXPECT_EQ(scores[2].f1, 0) << "a share of nothing";
  const ClassScore mean = mean_score(scores);
  EXPECT_DOUBLE_EQ(mean.recall, 0.8) << "of the classes that have samples";
  EXPECT_EQ(mean.support, 15);
}

TEST(ClassReport, ListsTheMostFrequentMistakesFirst) {
  const Table table = mistakes_table(animals(), 1);
  ASSERT_EQ(table.rows.size(), 1U);
  EXPECT_EQ(table.rows[0].values[0].text, "cat");
  EXPECT_EQ(table.rows[0].values[1].text, "dog");
  EXPECT_EQ(table.rows[0].values[2].text, "2");
  EXPECT_EQ(table.rows[0].values[3].text, "20.0 %");
  EXPECT_EQ(table.caption, "1 of 2 kinds of mistakes.");
}

TEST(ClassReport, ShowsEveryCountInItsPlace) {
  const Table table = confusion_table(animals());
  EXPECT_EQ(table.rows[0].values[2].text, "2");
  EXPECT_EQ(table.rows[1].values[3].text, "1");
  EXPECT_EQ(class_table(animals()).rows.back().values[0].text, "mean over classes");
}

}  // namespace
}  // namespace tutti
