#include "report/compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti {
namespace {

using ::testing::HasSubstr;

/// Three repeats of a strategy that ran at about this rate.
std::vector<Cell> repeats(const std::string& strategy, double rate, double spread = 0.001) {
  std::vector<Cell> cells;
  for (int i = 0; i < 3; ++i) {
    Cell cell;
    cell.config.model = "resnet18";
    cell.config.strategy = strategy;
    cell.config.ranks = 2;
    cell.repeat = i + 1;
    cell.throughput = StatedRate{rate * (1 + spread * (i - 1)), std::nullopt};
    cells.push_back(std::move(cell));
  }
  return cells;
}

std::vector<Cell> both(std::vector<Cell> a, const std::vector<Cell>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST(CompareCells, TellsWhatGotFasterSlowerAndStayed) {
  const auto before = both(both(repeats("bsp", 100), repeats("wfbp", 100)), repeats("dear", 100));
  const auto after = both(both(repeats("bsp", 120), repeats("wfbp", 80)), repeats("dear", 100.5));
  const Comparison result = compare_cells(before, after, 0.02);
  ASSERT_EQ(result.configs.size(), 3u);
  EXPECT_EQ(result.configs[0].change, Change::faster);
  EXPECT_EQ(result.configs[1].change, Change::slower);
  EXPECT_EQ(result.configs[2].change, Change::unchanged);
  EXPECT_NEAR(result.configs[1].ratio.ratio, 0.8, 1e-9);
  EXPECT_LT(result.configs[1].ratio.high, 1);
  EXPECT_TRUE(result.is_worse());
  EXPECT_THAT(sum_up(result), HasSubstr("1 faster, 1 slower, 1 unchanged, 0 unclear"));
  EXPECT_EQ(comparison_table(result).rows.size(), 3u);
}

TEST(CompareCells, NamesNobodyWhereNoiseExceedsTheEffect) {
  const Comparison result = compare_cells(repeats("bsp", 100, 0.3), repeats("bsp", 90, 0.3), 0.02);
  EXPECT_EQ(result.configs.at(0).change, Change::unclear);
  EXPECT_FALSE(result.is_worse());
}

TEST(CompareCells, LetsAChangeBelowTheThresholdPass) {
  EXPECT_TRUE(compare_cells(repeats("bsp", 100), repeats("bsp", 95), 0.02).is_worse());
  EXPECT_FALSE(compare_cells(repeats("bsp", 100), repeats("bsp", 95), 0.10).is_worse());
}

TEST(CompareCells, CountsAFailureAsWorseAndAnAbsenceNot) {
  std::vector<Cell> failed = repeats("bsp", 100);
  for (Cell& cell : failed) cell.is_failed = true;
  const Comparison result =
      compare_cells(both(repeats("bsp", 100), repeats("dear", 1)), both(failed, repeats("zero1", 1)), 0.02);
  EXPECT_EQ(result.failed_in_b.size(), 1u);
  EXPECT_EQ(result.only_in_a.size(), 1u);
  EXPECT_EQ(result.only_in_b.size(), 1u);
  EXPECT_TRUE(result.is_worse());
  EXPECT_THAT(sum_up(result), HasSubstr("FAILED in B: resnet18, bsp, 2 ranks"));
}

/// One run of a training run's kind: its spread is that of its steps.
std::vector<Cell> one_run(const std::string& strategy, double rate) {
  std::vector<Cell> cells = repeats(strategy, rate);
  cells.resize(1);
  cells[0].throughput.reset();
  cells[0].samples_per_step = 64;
  for (int i = 0; i < 40; ++i) cells[0].step_s.push_back(64 / rate * (1 + 0.001 * (i % 3)));
  return cells;
}

TEST(CompareCells, CannotTellFromOneRun) {
  const Comparison result = compare_cells(one_run("bsp", 100), one_run("bsp", 50), 0.02);
  EXPECT_EQ(result.configs.at(0).change, Change::untold);
  EXPECT_FALSE(result.is_worse());
  EXPECT_THAT(sum_up(result), HasSubstr("0 slower, 0 unchanged, 0 unclear, 1 cannot tell"));
  const Table table = comparison_table(result);
  EXPECT_EQ(table.rows[0].values[table.column("change")].text, "cannot tell (one run)");
}

TEST(CompareCells, PairsStrategiesWhereAllElseIsEqual) {
  const Comparison result = compare_cells(repeats("bsp", 100), repeats("dear", 120), 0.02);
  ASSERT_EQ(result.configs.size(), 1u);
  EXPECT_EQ(result.configs[0].differs, "bsp → dear");
  EXPECT_EQ(result.configs[0].change, Change::faster);
  EXPECT_TRUE(result.only_in_a.empty());
  std::vector<Cell> larger = repeats("bsp", 150);
  for (Cell& cell : larger) cell.config.batch = 64;
  EXPECT_EQ(compare_cells(repeats("bsp", 100), larger, 0.02).configs.at(0).differs, "batch - → 64");
  for (Cell& cell : larger) cell.config.model = "vgg";
  EXPECT_TRUE(compare_cells(repeats("bsp", 100), larger, 0.02).configs.empty());  // other samples
  // Which of two belongs to the one nobody can say.
  EXPECT_TRUE(compare_cells(both(repeats("bsp", 100), repeats("wfbp", 100)), repeats("dear", 1), 0.02).configs.empty());
}

TEST(CompareCells, RaisesFewFalseAlarmsAmongMany) {
  // Twenty comparisons of runs that differ by chance: one of them at p = 0.03 alone is nothing.
  std::vector<Cell> before, after;
  for (int i = 0; i < 20; ++i) {
    before = both(before, repeats("s" + std::to_string(i), 100, 0.02));
    after = both(after, repeats("s" + std::to_string(i), i == 7 ? 94.5 : 100, 0.02));
  }
  const Comparison result = compare_cells(before, after, 0.02);
  EXPECT_LT(result.configs[7].ratio.p, 0.05);
  EXPECT_FALSE(result.is_worse());
}

TEST(CompareCells, ComparesRunTimesWhereNothingElseIsKnown) {
  std::vector<Cell> before = repeats("bsp", 1), after = repeats("bsp", 1);
  for (std::size_t i = 0; i < 3; ++i) {
    before[i].throughput.reset();
    after[i].throughput.reset();
    before[i].run_s = 100 + static_cast<double>(i);
    after[i].run_s = 200 + static_cast<double>(i);
  }
  EXPECT_EQ(compare_cells(before, after, 0.02).configs.at(0).change, Change::slower);
}

TEST(CompareCells, ComparesAcrossSourcesWhereEachSideHasOne) {
  std::vector<Cell> simulated = repeats("bsp", 100);
  for (Cell& cell : simulated) cell.source = Source::simulated;
  const Comparison result = compare_cells(repeats("bsp", 100), simulated, 0.02);
  ASSERT_EQ(result.configs.size(), 1u);
  EXPECT_EQ(result.configs[0].source_b, Source::simulated);
  EXPECT_TRUE(compare_cells(both(repeats("bsp", 1), simulated), simulated, 0.02).configs.size() == 1);
}

}  // namespace
}  // namespace tutti
