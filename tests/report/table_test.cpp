#include "report/table.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tutti/error.h"

namespace tutti {
namespace {

Table sample() {
  Table table{"sample", "A sample", "What it is.", {}, {}};
  table.columns = {{"name", "name"}, {"rate", "rate", "plusminus", 2}, {"share", "share", "percent", 1}};
  table.rows.push_back({{text_value("a|b, \"c\""), plusminus_value(12.345, 0.5, 2), percent_value(0.25)}, false});
  table.rows.push_back({{text_value("ü"), plusminus_value(7, std::nullopt, 2), percent_value(std::nullopt)}, true});
  return table;
}

TEST(Table, IsAlignedForATerminal) {
  EXPECT_EQ(aligned_text(sample(), 10),
            "## A sample\n\n"
            "| name     |         rate |  share |\n"
            "|----------|-------------:|-------:|\n"
            "| a|b, \"c\" | 12.35 ± 0.50 | 25.0 % |\n"
            "| ü        |         7.00 |      - |\n"
            "\nWhat it is.\n");
}

TEST(Table, SaysHowManyRowsATerminalDoesNotShow) {
  EXPECT_NE(aligned_text(sample(), 1).find("… and 1 more rows"), std::string::npos);
}

TEST(Table, IsMarkdownWithAveragesSetOff) {
  EXPECT_EQ(markdown(sample()),
            "## A sample\n\n| name | rate | share |\n|---|---:|---:|\n| a\\|b, \"c\" | 12.35 ± 0.50 | 25.0 % |\n"
            "| **ü** | **7.00** | - |\n\nWhat it is.\n");
}

TEST(Table, IsCsvWithNumbersInFullAndDeviationsOfTheirOwn) {
  EXPECT_EQ(csv(sample()), "name,rate,rate_deviation,share\n\"a|b, \"\"c\"\"\",12.345,0.5,0.25\nü,7,,\n");
}

TEST(Table, IsJsonAsThePageWantsIt) {
  const nlohmann::json json = to_json(sample());
  EXPECT_EQ(json["columns"][1]["kind"], "plusminus");
  EXPECT_EQ(json["rows"][0]["rate"], nlohmann::json({{"value", 12.345}, {"deviation", 0.5}, {"text", "12.35 ± 0.50"}}));
  EXPECT_EQ(json["rows"][0]["name"], "a|b, \"c\"");
}

TEST(Table, HasRunTimesInHoursMinutesSeconds) {
  EXPECT_EQ(hours_minutes_seconds(52612), "14:36:52");
  EXPECT_EQ(hours_minutes_seconds(3599.6), "1:00:00");
  EXPECT_EQ(hours_minutes_seconds(60), "0:01:00");
  EXPECT_EQ(hours_minutes_seconds(4.136), "0:00:04.14");
  EXPECT_EQ(hours_minutes_seconds(59.999), "0:01:00");
}

TEST(Table, KnowsItsColumns) {
  EXPECT_EQ(sample().column("share"), 2u);
  EXPECT_THROW(sample().column("none"), Error);
}

TEST(Table, CountsRowsThatWouldBeTooMany) {
  Table table;
  while (table.has_room()) table.rows.emplace_back();
  table.has_room();
  EXPECT_EQ(table.rows.size(), Table::kMostRows);
  EXPECT_EQ(table.left_out, 2u);
}

}  // namespace
}  // namespace tutti
