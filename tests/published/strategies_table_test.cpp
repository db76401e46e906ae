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

TEST(StrategiesTable, IsReadInTheMidstOfATextAsItsAuthorsPublishedIt) {
  const auto rows = read(
      "# Benchmarks\nWe measured this.\n\n| DNN | BS | CONNECTION | METHOD | Baseline | 4 GPUs "
      "|\n|---|---|---|---|---|---|\n"
      "| a | 1 | b | c | 250 | 900 |\n\n# Figures\n<div align=\"center\">\n<img src=\"./a.png\" "
      "align=center/>\n</div>\n"
      "![b](b.png)\n\nThe end.\n");
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].rates.size(), 2u);
  // Right below a row it may be a damaged one.
  EXPECT_THROW(read("| DNN | BS | CONNECTION | METHOD | Baseline |\n| a | 1 | b | c | 250 |\na | 1 | b | d | 250 |\n"),
               Error);
}

TEST(StrategiesTable, IsMadeOfFiguresWithTheBaselineInEachRow) {
  std::vector<std::string> notes;
  const auto rows = read(
      "# Source: somebody\n\nmodel,batch,network,strategy,ranks,samples_per_s,deviation\na,64,\"b, c\",,1,250,\n"
      "a,64,\"b, c\",BSP,4,900.5,5\na,64,\"b, c\",BSP,8,1700,\na,64,\"b, c\",DeAR,4,950,1\na,64,d,BSP,4,800,1\n",
      &notes);
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].line, 4u);
  EXPECT_EQ(rows[0].network, "b, c");
  EXPECT_EQ(rows[0].method, "BSP");
  ASSERT_EQ(rows[0].rates.size(), 3u);
  EXPECT_TRUE(rows[0].rates[0].is_baseline());
  EXPECT_DOUBLE_EQ(rows[0].rates[1].samples_per_s, 900.5);
  EXPECT_EQ(rows[0].rates[1].deviation, 5.0);
  EXPECT_EQ(rows[0].rates[2].deviation, std::nullopt);
  EXPECT_EQ(rows[1].rates[0].samples_per_s, 250);
  EXPECT_EQ(rows[2].rates.size(), 1u);  // nobody has measured one rank there
  EXPECT_THAT(notes, ::testing::ElementsAre("t.md: figures of somebody"));
}

std::string refusal(const std::string& content) {
  try {
    read(content);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Figures, AreRefusedByLine) {
  const std::string header = "model,batch,network,strategy,ranks,samples_per_s\n";
  EXPECT_EQ(refusal(header + "a,1,b,c,4,900\n"), "accepted");
  EXPECT_THAT(refusal(header + "a,1,b,c,4\n"), HasSubstr("t.md, line 2: 5 fields where the header has 6"));
  EXPECT_THAT(refusal(header + "a,1,b,\"c,4,900\n"), HasSubstr("line 2: a quote is not closed"));
  EXPECT_THAT(refusal(header + "a,1,b,,4,900\n"), HasSubstr("line 2: several ranks need a strategy"));
  EXPECT_THAT(refusal(header + "a,1,b,c,4,fast\n"), HasSubstr("line 2: 'fast' is no rate"));
  EXPECT_THAT(refusal("model,bacth,ranks\n"), HasSubstr("line 1: unknown column 'bacth'; did you mean 'batch'?"));
}

TEST(StrategiesTable, IsSeenByItsHeader) {
  EXPECT_TRUE(has_strategies(published_text("t", "# x\nmodel,strategy,ranks,samples_per_s\n")));
  EXPECT_FALSE(has_strategies(published_text("t", "model,ranks,epoch,train_s\n")));
  EXPECT_TRUE(has_strategies(published_text("t", "x\n| DNN | BS | CONNECTION | METHOD | Baseline |\n")));
  EXPECT_FALSE(has_strategies(published_text("t", "| DNN | BS |\n")));
  EXPECT_FALSE(has_strategies(published_text("t", "")));
  EXPECT_THROW(read("| a | 1 | b | c | 250 |\n"), Error);
}

}  // namespace
}  // namespace tutti
