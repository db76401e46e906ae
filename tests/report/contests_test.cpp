#include "report/contests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

/// Runs of a strategy at about this rate, by steps as a training run has them.
void add(std::vector<Cell>& cells, const std::string& strategy, double rate, int runs, int ranks = 2) {
  for (int i = 0; i < runs; ++i) {
    Cell cell;
    cell.config.model = "mnist-cnn";
    cell.config.strategy = strategy;
    cell.config.ranks = ranks;
    cell.run = strategy + "-" + std::to_string(i + 1);
    cell.samples_per_step = 64;
    cell.step_s = std::vector<double>(40, 64 / (rate * (1 + 0.01 * (i - 1))));
    cells.push_back(std::move(cell));
  }
}

Headline only_headline(const std::vector<Cell>& cells) {
  const std::vector<Group> groups = group_cells(cells);
  const std::vector<Headline> lines = headlines(groups);
  EXPECT_EQ(lines.size(), 1u);
  return lines.empty() ? Headline{} : lines.front();
}

TEST(Headline, NamesTheFastestAndItsLead) {
  std::vector<Cell> cells;
  add(cells, "bsp", 100, 3);
  add(cells, "dear", 112, 3);
  const Headline line = only_headline(cells);
  EXPECT_EQ(line.label, "fastest");
  EXPECT_EQ(line.value, "dear, 12.0 % ahead");
  EXPECT_THAT(line.detail, StartsWith("of bsp; 95 %: "));
}

TEST(Headline, NamesNobodyWhereNoiseExceedsTheDifference) {
  std::vector<Cell> cells;
  add(cells, "bsp", 100, 3);
  add(cells, "dear", 100.5, 3);
  const Headline line = only_headline(cells);
  EXPECT_EQ(line.value, "no winner");
  EXPECT_THAT(line.detail, HasSubstr("dear, bsp cannot be told apart"));
}

TEST(Headline, CannotTellFromOneRunEach) {
  std::vector<Cell> cells;
  add(cells, "bsp", 100, 1);
  add(cells, "dear", 200, 1);
  EXPECT_EQ(only_headline(cells).value, "cannot tell");
  add(cells, "dear", 200, 3);
  EXPECT_EQ(only_headline(cells).value, "cannot tell");  // of bsp there still is one
}

TEST(Headline, CountsWinsWhereThereAreSeveralComparisons) {
  std::vector<Cell> cells;
  for (const int ranks : {2, 4, 8}) {
    add(cells, "bsp", 100, 3, ranks);
    add(cells, "dear", ranks == 8 ? 100.2 : 150, 3, ranks);
  }
  const Headline line = only_headline(cells);
  EXPECT_EQ(line.value, "dear in 2 of 3");
  EXPECT_THAT(line.detail, HasSubstr("dear 2, no winner 1"));
}

TEST(Headline, ComparesRunsByTheirNamesWhereNoStrategiesAre) {
  std::vector<Cell> cells;
  add(cells, "bsp", 100, 2, 1);
  add(cells, "dear", 190, 2, 2);
  EXPECT_THAT(only_headline(cells).value, StartsWith("dear-1, dear-2, 90.0 % ahead"));
}

TEST(Headline, OfOneRunIsWhatItReached) {
  std::vector<Cell> cells;
  add(cells, "bsp", 100, 1);
  cells[0].test_accuracy = 0.9712;
  const std::vector<Group> groups = group_cells(cells);
  const std::vector<Headline> lines = headlines(groups);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_THAT(lines[0].value, HasSubstr("samples/s"));
  EXPECT_EQ(lines[1].value, "0.9712");
}

}  // namespace
}  // namespace tutti
