#include "sweep/cell_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "sweep/cells.h"

namespace tutti::sweep {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::HasSubstr;

/// A run folder with records as `tutti train` writes them: two epochs of two ranks on two hosts.
class CellRecord : public ::testing::Test {
 protected:
  CellRecord() : folder_(::testing::TempDir() + "cell_record_" + std::to_string(::getpid())) {
    fs::create_directories(folder_);
    cell_.id = "dear-ranks2.2";
    set({{"strategy", "dear"}, {"ranks", "2"}, {"network", "slow"}});
    cell_.repeat = 2;
    cell_.ranks = 2;
    cell_.nodes = 2;
    cell_.network = "slow";
    cell_.emulated = {2.5, 100, "a slow one"};
    attempt_.command = "tutti train";
    attempt_.load = 0.5;
    attempt_.wall_s = 3;
    const json rank0 = {
        {"train_s", 1.5}, {"comm_s", 0.5}, {"comm_exposed_s", 0.25}, {"data_wait_s", 0.125}, {"samples", 4}};
    const json rank1 = {
        {"train_s", 1.25}, {"comm_s", 0.75}, {"comm_exposed_s", 0.5}, {"data_wait_s", 0.0}, {"samples", 4}};
    records_ = {
        {{"record", "run"},
         {"config",
          {{"model", "mnist-cnn"},
           {"data", "digits"},
           {"batch", 4},
           {"accumulate", 3},
           {"ranks", 2},
           {"strategy", "dear"},
           {"wire", "fp16"},
           {"workers", 1},
           {"precision", "fp32"},
           {"servers", 0}}},
         {"nodes", {{{"host", "lm1"}, {"ranks", {0}}}, {{"host", "lm6"}, {"ranks", {1}}}}},
         {"environment", {{"commit", "abc"}, {"libtorch", "1.13.0"}}}},
        {{"record", "progress"}, {"step", 2}, {"epoch", 0}, {"data_per_s", 100.0}},
        {{"record", "epoch"},
         {"epoch", 1},
         {"train_s", 1.5},
         {"train_loss", 2.0},
         {"test_s", 0.5},
         {"test_accuracy", 0.5},
         {"ranks", {rank0, rank1}},
         {"step_s", {0.5, 0.25}}},
        {{"record", "progress"}, {"step", 4}, {"epoch", 1}, {"data_per_s", 200.0}},
        {{"record", "epoch"},
         {"epoch", 2},
         {"train_s", 1.0},
         {"train_loss", 1.0},
         {"ranks", {rank0, rank1}},
         {"step_s", {0.125}}},
        {{"record", "explain"},
         {"ranks",
          {{{"compute_s", 1.0},
            {"slowest_rank_s", 0.5},
            {"startup_s", 0.0},
            {"bandwidth_s", 0.25},
            {"scheduling_s", 0.0},
            {"data_wait_s", 0.0},
            {"optimizer_s", 0.5}},
           {{"compute_s", 2.0},
            {"slowest_rank_s", 0.0},
            {"startup_s", 0.5},
            {"bandwidth_s", 0.25},
            {"scheduling_s", 0.0},
            {"data_wait_s", 0.5},
            {"optimizer_s", 0.5}}}}},
        {{"record", "summary"},
         {"steps", 3},
         {"train_s", 2.5},
         {"test_accuracy", 0.75},
         {"transport", "mpi"},
         {"device", "cpu"}},
    };
  }
  ~CellRecord() override { remove_tree(folder_); }

  void set(const Settings& settings) {
    cell_.settings = settings;
    cell_.config = describe_config(settings);
  }
  json make(const std::string& end = "\n") {
    std::ofstream file(folder_ / "records.jsonl");
    for (std::size_t i = 0; i < records_.size(); ++i)
      file << records_[i].dump() << (i + 1 < records_.size() ? "\n" : end);
    file.close();
    return make_cell_record(cell_, "my-sweep", 1, folder_, attempt_);
  }

  fs::path folder_;
  SweepCell cell_;
  Attempt attempt_;
  std::vector<json> records_;
};

TEST_F(CellRecord, HoldsWhatTheRunHasMeasured) {
  const json record = make();
  EXPECT_EQ(record.at("status"), "done") << record.dump(1);
  EXPECT_FALSE(record.contains("error"));
  EXPECT_EQ(record.at("source"), "measured");
  EXPECT_EQ(record.at("sweep"), "my-sweep");
  EXPECT_EQ(record.at("cell"), "dear-ranks2.2");
  EXPECT_EQ(record.at("repeat"), 2);
  EXPECT_EQ(record.at("baseline"), false);
  EXPECT_EQ(record.at("load"), 0.5);
  EXPECT_EQ(record.at("environment"), (json{{"commit", "abc"}, {"libtorch", "1.13.0"}}));
  EXPECT_EQ(record.at("samples_per_step"), 24);
  EXPECT_EQ(record.at("step_s"), (json{0.5, 0.25, 0.125}));
  EXPECT_EQ(record.at("warmup_steps"), 1);
  EXPECT_EQ(record.at("steps"), 3);
  EXPECT_EQ(record.at("run_s"), 2.5);
  EXPECT_EQ(record.at("test_accuracy"), 0.75);
  EXPECT_EQ(record.at("config"), (json{{"model", "mnist-cnn"},
                                       {"data", "digits"},
                                       {"batch", 4},
                                       {"strategy", "dear"},
                                       {"wire", "fp16"},
                                       {"network", "slow"},
                                       {"ranks", 2},
                                       {"nodes", 2},
                                       {"workers", 1},
                                       {"precision", "fp32"},
                                       {"transport", "mpi"},
                                       {"device", "cpu"}}));
  EXPECT_EQ(record.at("network"),
            (json{{"name", "slow"}, {"emulated", true}, {"gbps", 2.5}, {"startup_us", 100.0}, {"note", "a slow one"}}));
}

TEST_F(CellRecord, TellsEpochsRanksAndNodesApart) {
  const json record = make();
  ASSERT_EQ(record.at("epochs").size(), 2U);
  const json& first = record.at("epochs")[0];
  EXPECT_EQ(first.at("train_s"), 1.5);
  EXPECT_EQ(first.at("test_s"), 0.5);
  EXPECT_EQ(first.at("test_accuracy"), 0.5);
  EXPECT_EQ(first.at("loss"), 2.0);
  EXPECT_EQ(first.at("data_per_s"), (json{{{"step", 2}, {"value", 100.0}}}));
  EXPECT_EQ(first.at("ranks")[1], (json{{"rank", 1},
                                        {"node", "lm6"},
                                        {"train_s", 1.25},
                                        {"comm_s", 0.75},
                                        {"comm_exposed_s", 0.5},
                                        {"data_wait_s", 0.0}}));
  EXPECT_EQ(record.at("epochs")[1].at("data_per_s"), (json{{{"step", 4}, {"value", 200.0}}}));
  EXPECT_FALSE(record.at("epochs")[1].contains("test_accuracy"));
  EXPECT_EQ(record.at("nodes"), (json{{{"name", "lm1"}, {"ranks", 1}}, {{"name", "lm6"}, {"ranks", 1}}}));
  EXPECT_EQ(record.at("node_list"), "lm[1,6]");
}

TEST_F(CellRecord, BreaksAStepDownAsTheMeanOfRanks) {
  EXPECT_EQ(make().at("breakdown"),
            (json{{"compute_s", 1.5},
                  {"exposed", {{"slowest rank", 0.25}, {"startup", 0.25}, {"bandwidth", 0.25}, {"scheduling", 0.0}}},
                  {"data_wait_s", 0.25},
                  {"optimizer_s", 0.5}}));
}

TEST_F(CellRecord, OfOneRankNamesNothingThatTravels) {
  set({{"ranks", "1"}});
  cell_.network = "";
  records_[0]["config"]["ranks"] = 1;
  const json config = make().at("config");
  for (const char* name : {"strategy", "wire", "transport", "network"}) EXPECT_FALSE(config.contains(name)) << name;
}

TEST_F(CellRecord, IsFailedWithTheErrorWhateverWasMeasured) {
  attempt_.error = "rank 1 of 2 failed";
  const json record = make();
  EXPECT_EQ(record.at("status"), "failed");
  EXPECT_EQ(record.at("error"), "rank 1 of 2 failed");
}

TEST_F(CellRecord, IsFailedWithoutASummary) {
  records_.pop_back();
  EXPECT_EQ(make().at("status"), "failed");
  EXPECT_EQ(make().at("error"), "it ended without a summary");
}

TEST_F(CellRecord, IsFailedWhenTheSummaryIsOnlyHalfWritten) {
  EXPECT_EQ(make("").at("error"), "it ended without a summary");
}

TEST_F(CellRecord, IsFailedWhenStepsAreMissing) {
  records_.back()["steps"] = 7;
  EXPECT_EQ(make().at("error"), "it has the times of 3 steps instead of 7");
}

TEST_F(CellRecord, IsFailedWhenThereIsNothing) {
  remove_tree(folder_);
  const json record = make_cell_record(cell_, "my-sweep", 1, folder_, attempt_);
  EXPECT_EQ(record.at("status"), "failed");
  EXPECT_TRUE(record.at("environment").contains("commit"));
}

TEST_F(CellRecord, IsFailedWhenRecordsAreNotJson) {
  std::ofstream(folder_ / "records.jsonl") << "nonsense\n";
  EXPECT_THAT(make_cell_record(cell_, "s", 1, folder_, attempt_).error, HasSubstr("its records cannot be read"));
}

TEST(LastComplaint, IsTuttisOwnMessageOrElseTheLastLine) {
  EXPECT_EQ(last_complaint("step 1\n[rank 1] tutti: no space left\nrank 1 of 2 failed: exit code 1\n\n"),
            "no space left");
  EXPECT_EQ(last_complaint("tutti: first\ntutti: second\n"), "second");
  EXPECT_EQ(last_complaint("hello\nSegmentation fault\r\n"), "Segmentation fault");
  EXPECT_EQ(last_complaint(""), "");
}

TEST(LastComplaint, CanAlwaysBeWrittenAsJson) {
  EXPECT_EQ(last_complaint("naïve\n"), "naïve");
  EXPECT_EQ(last_complaint("broken \xc3\n"), "broken \ufffd");
  EXPECT_EQ(last_complaint(std::string(5000, 'x')), std::string(1000, 'x'));
}

}  // namespace
}  // namespace tutti::sweep
