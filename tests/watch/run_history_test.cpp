#include "watch/run_history.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "watch/sample_run.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class RunHistoryOfAFile : public testing::Test {
 protected:
  RunHistoryOfAFile() : runs_("tutti-run-history-test") { runs_.begin("first"); }

  /// What the history knows after it has looked.
  json losses() {
    history_.read(runs_.records("first"));
    return history_.progress().from(0).at("columns").value("loss", json::array());
  }

  SampleRuns runs_;
  RunHistory history_;
};

TEST_F(RunHistoryOfAFile, ReadsOnlyWhatWasAdded) {
  runs_.progress("first", 10, 2);
  EXPECT_EQ(losses(), json({2}));
  runs_.progress("first", 20, 1);
  EXPECT_EQ(losses(), json({2, 1}));
  EXPECT_EQ(history_.changes(), 0u) << "the rows before are still the same";
  EXPECT_EQ(history_.progress().from(0).at("time"), json({1010, 1020}));
}

TEST_F(RunHistoryOfAFile, WaitsForTheEndOfAHalfWrittenLine) {
  runs_.append("first", R"({"record":"progress","time":7,"step":10,"lo)");
  EXPECT_EQ(losses(), json::array());
  runs_.append("first", R"(ss":0.5})");
  EXPECT_EQ(losses(), json::array()) << "a line without its end may still grow";
  runs_.append("first", "\n");
  EXPECT_EQ(losses(), json({0.5}));
  EXPECT_EQ(history_.facts().at("warnings"), json::array());
}

TEST_F(RunHistoryOfAFile, BeginsAnewWithAnotherFileAndWithAShorterOne) {
  runs_.progress("first", 10, 2);
  losses();
  fs::remove(runs_.records("first"));
  runs_.begin("first");
  EXPECT_EQ(losses(), json::array());
  EXPECT_EQ(history_.changes(), 1u);
  // Longer than what was read, and another one all the same.
  fs::remove(runs_.records("first"));
  runs_.begin("first", 5);
  runs_.progress("first", 7, 4);
  runs_.progress("first", 8, 3);
  EXPECT_EQ(losses(), json({4, 3}));
  EXPECT_EQ(history_.changes(), 2u);
  fs::remove(runs_.records("first"));
  EXPECT_EQ(losses(), json::array());
  EXPECT_TRUE(history_.is_empty());
}

TEST_F(RunHistoryOfAFile, GoesOnWithACopyThatHasGrown) {
  runs_.progress("first", 10, 2);
  losses();
  // As rsync leaves it: another file, with the same beginning.
  const std::string text = read_file(runs_.records("first"));
  write_file_atomically(runs_.records("first"), text);
  runs_.progress("first", 20, 1);
  EXPECT_EQ(losses(), json({2, 1}));
  EXPECT_EQ(history_.changes(), 0u);
}

TEST_F(RunHistoryOfAFile, GoesBackWithARunThatWasResumed) {
  runs_.progress("first", 10, 3);
  runs_.progress("first", 20, 2);
  runs_.epoch("first", 1, 20, 0.5);
  runs_.finish("first", 20);
  EXPECT_EQ(losses(), json({3, 2}));
  EXPECT_TRUE(history_.is_finished());
  runs_.begin("first", 10);
  runs_.progress("first", 20, 1);
  EXPECT_EQ(losses(), json({3, 1}));
  EXPECT_FALSE(history_.is_finished());
  EXPECT_EQ(history_.epochs().rows(), 0u);
  EXPECT_EQ(history_.facts().at("resumes"), json({{{"step", 10}, {"time", 1010}}}));
}

TEST_F(RunHistoryOfAFile, NamesADamagedLineAndReadsTheOthers) {
  runs_.progress("first", 10, 2);
  runs_.append("first", "nonsense\n{\"record\":\"progress\",\"step\":\"x\"}\n");
  runs_.progress("first", 20, 1);
  EXPECT_EQ(losses(), json({2, 1}));
  const json warnings = history_.facts().at("warnings");
  ASSERT_EQ(warnings.size(), 2u) << warnings;
  EXPECT_NE(warnings[0].get<std::string>().find("line 3"), std::string::npos) << warnings;
  EXPECT_NE(warnings[1].get<std::string>().find("line 4"), std::string::npos) << warnings;
}

TEST_F(RunHistoryOfAFile, KnowsEpochsAndHowTheRunEnded) {
  runs_.epoch("first", 1, 20, 0.75);
  runs_.finish("first", 20);
  losses();
  const json columns = history_.epochs().from(0).at("columns");
  EXPECT_EQ(columns.at("test_accuracy"), json({0.75}));
  EXPECT_EQ(columns.at("test_loss"), json({0.25}));
  EXPECT_EQ(columns.at("exposed_share"), json({0.2})) << "4 of 20 seconds";
  const json facts = history_.facts();
  EXPECT_EQ(facts.at("last_epoch").at("ranks").at(1).at("exposed_share"), 0.3);
  EXPECT_EQ(facts.at("config").at("model"), "mnist-cnn");
  EXPECT_EQ(facts.at("summary").at("steps"), 20);
  EXPECT_EQ(facts.at("first_record"), 1000);
  EXPECT_EQ(facts.at("last_record"), 1020);
}

}  // namespace
}  // namespace tutti
