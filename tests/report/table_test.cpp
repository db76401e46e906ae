#include "report/table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/utf8.h"
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

/// Of runs on two networks: three settings, an answer, a detail.
Table runs() {
  Table table{"runs", "Runs", "About them.", {}, {}};
  table.columns = {as_setting({"model", "model"}),
                   as_setting({"network", "network"}),
                   {"n", "n", "number"},
                   as_answer({"rate", "rate", "number", 1}),
                   {"note", "note"}};
  for (const char* network : {"1gbe", "a network with a long name"})
    table.rows.push_back(
        {{text_value("resnet18"), text_value(network), whole_value(3, -1), number_value(12.5, 1), text_value("")},
         false});
  return table;
}

TEST(TableForPeople, PutsAnswersBeforeDetailsAndWhatIsTheSameIntoTheCaption) {
  const Table table = for_people(runs());
  ASSERT_EQ(table.columns.size(), 2u);
  EXPECT_EQ(table.columns[0].key, "network");
  EXPECT_EQ(table.columns[1].key, "rate");  // the same in all rows, and stays
  EXPECT_EQ(table.caption, "The same in all rows: model resnet18, n 3. About them.");
  Table one = runs();
  one.rows.pop_back();
  EXPECT_EQ(for_people(one).columns.size(), 2u);  // n and rate
  EXPECT_EQ(for_people(one).caption, "Settings: model resnet18, network 1gbe. About them.");
}

TEST(Table, LeavesOutDetailsWhereATerminalIsTooNarrowAndSaysSo) {
  const std::string text = aligned_text(runs(), 10, 40);
  EXPECT_EQ(text.find("About"), text.rfind("About"));
  std::size_t longest = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) longest = std::max(longest, display_width(line));
  EXPECT_LE(longest, 40u) << text;
  EXPECT_NE(text.find("| rate |"), std::string::npos) << text;
  EXPECT_NE(text.find("… and more columns: "), std::string::npos) << text;
  EXPECT_EQ(aligned_text(runs(), 10, 200), aligned_text(runs(), 10));
  EXPECT_NE(aligned_text(runs(), 10, 3).find("| resnet18 |"), std::string::npos);
}

TEST(Table, IsCutBetweenCharacters) {
  EXPECT_EQ(cut_text("größer", 6), "größer");
  EXPECT_EQ(cut_text("größer", 4), "grö…");
  EXPECT_EQ(wrapped("one two three", 7), "one two\nthree");
  EXPECT_EQ(wrapped("one two three", 0), "one two three");
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
