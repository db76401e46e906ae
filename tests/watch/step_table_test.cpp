#include "watch/step_table.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace tutti {
namespace {

using nlohmann::json;

/// As a page gets it: what is none is null.
json shown(const StepTable& table, std::size_t row = 0) { return json::parse(table.from(row).dump()); }

TEST(StepTable, HasARowForEachMomentAndAColumnForEachName) {
  StepTable table;
  table.add(1, 10, {{"loss", 0.5}});
  table.add(2, 20, {{"lr", 0.25}, {"loss", 1}});
  EXPECT_EQ(shown(table), json({{"from", 0},
                                {"step", {1, 2}},
                                {"time", {10, 20}},
                                {"columns", {{"loss", {0.5, 1}}, {"lr", {nullptr, 0.25}}}}}));
  EXPECT_EQ(shown(table, 1).at("columns").at("lr"), json({0.25}));
  EXPECT_EQ(shown(table, 2).at("step"), json::array());
  EXPECT_EQ(shown(table, 7).at("from"), 2) << "more than there is";
}

TEST(StepTable, LosesWhatCameAfterAStepThatTheRunWentBackTo) {
  StepTable table;
  for (int step = 1; step <= 5; ++step) table.add(step, step, {{"loss", step}});
  EXPECT_TRUE(table.go_back_to(5));
  EXPECT_FALSE(table.go_back_to(3));
  EXPECT_EQ(shown(table).at("columns").at("loss"), json({1, 2, 3}));
}

TEST(StepTable, KeepsWhatIsRecentAndThinsWhatIsOldWhenItIsFull) {
  StepTable table;
  const auto most = static_cast<int>(StepTable::kMostRows);
  for (int step = 0; step < most; ++step) EXPECT_TRUE(table.add(step, step, {{"loss", step}}));
  EXPECT_FALSE(table.add(most, most, {{"loss", most}})) << "rows before it have changed";
  const json now = shown(table);
  const std::size_t rows = now.at("step").size();
  EXPECT_EQ(rows, StepTable::kMostRows * 3 / 4 + 1);
  EXPECT_EQ(now.at("columns").at("loss").at(0), 0.5) << "the mean of steps 0 and 1";
  EXPECT_EQ(now.at("step").at(0), 1);
  EXPECT_EQ(now.at("step").back(), most);
  EXPECT_EQ(now.at("columns").at("loss").at(rows - 2), most - 1);
}

TEST(StepTable, TakesNoMoreNamesThanAPageHasRoomFor) {
  StepTable table;
  StepTable::Numbers numbers;
  for (std::size_t i = 0; i < StepTable::kMostColumns + 10; ++i) numbers.emplace_back("n" + std::to_string(i), 1);
  table.add(1, 1, numbers);
  EXPECT_EQ(shown(table).at("columns").size(), StepTable::kMostColumns);
}

}  // namespace
}  // namespace tutti
