#include "published/strategies_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tutti/error.h"

namespace tutti {
namespace {

using ::testing::HasSubstr;

std::vector<StrategiesRow> read(const std::string& content, std::vector<std::string>* notes = nullptr) {
  PublishedText text = published_text("t.md", content);
  std::vector<StrategiesRow> rows = read_strategies(text);
  if (notes != nullptr) *notes = text.notes;
  return rows;
}

TEST(StrategiesTable, HasARateForEachColumnOfItsHeader) {
  const auto rows = read(
      "# Results\n\n| DNN | BS | CONNECTION | METHOD | Baseline | 4 GPUs | 8 GPUs |\n|---|---|---|---|---|---|---|\n"
      "| ResNet-50 | 64 | 10GbE | BSP | 250 | 500.5 +- 5 | - |\n| **VGG** | 8 | IB | DeAR | 10 | 20 ± 0.5 | 40 |\n");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].line, 4u);
  EXPECT_EQ(rows[0].model, "ResNet-50");
  EXPECT_EQ(rows[0].batch, 64);
  EXPECT_EQ(rows[0].network, "10GbE");
  EXPECT_EQ(rows[0].method, "BSP");
  ASSERT_EQ(rows[0].rates.size(), 2u);  // nothing was measured on 8
  EXPECT_TRUE(rows[0].rates[0].is_baseline());
  EXPECT_EQ(rows[0].rates[1].ranks, 4);
  EXPECT_DOUBLE_EQ(rows[0].rates[1].samples_per_s, 500.5);
  EXPECT_EQ(rows[0].rates[1].deviation, 5.0);
  EXPECT_EQ(rows[1].model, "VGG");
  ASSERT_EQ(rows[1].rates.size(), 3u);
  EXPECT_EQ(rows[1].rates[1].deviation, 0.5);
  EXPECT_EQ(rows[1].rates[2].deviation, std::nullopt);
}

TEST(StrategiesTable, HasOneColumnForBaselineAndOneGpuWhereItsRowsDo) {
  std::vector<std::string> notes;
  const auto rows = read(
      "| DNN | BS | CONNECTION | METHOD | Baseline | 1 GPU | 4 GPUs |\n| a | 1 | b | c | 250 | 900 |\n"
      "| a | 1 | b | d | 250 | 950 |\n",
      &notes);
  ASSERT_EQ(rows[1].rates.size(), 2u);
  EXPECT_EQ(rows[1].rates[0].ranks, 1);
  EXPECT_EQ(rows[1].rates[1].ranks, 4);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_THAT(notes[0], HasSubstr("Baseline and 1 GPU"));
}

TEST(StrategiesTable, IsSeenByItsHeader) {
  EXPECT_TRUE(has_strategies(published_text("t", "x\n| DNN | BS | CONNECTION | METHOD | Baseline |\n")));
  EXPECT_FALSE(has_strategies(published_text("t", "| DNN | BS |\n")));
  EXPECT_FALSE(has_strategies(published_text("t", "")));
  EXPECT_THROW(read("| a | 1 | b | c | 250 |\n"), Error);
}

}  // namespace
}  // namespace tutti
