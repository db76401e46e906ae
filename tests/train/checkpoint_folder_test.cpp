// What lies in a run's folder of checkpoints, and which of it a run goes on from.

#include "train/checkpoint_folder.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "tutti/error.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

class CheckpointFolder : public testing::Test {
 protected:
  void TearDown() override { remove_tree(runs_); }

  static void put(const fs::path& folder, const std::string& text) {
    make_folders(folder);
    std::ofstream(folder / kStateFile) << text;
  }
  void write(int64_t step, const std::string& text) const { put(unfinished_checkpoint(run_, step), text); }
  fs::path save(int64_t step, const std::string& text = "{}") const {
    write(step, text);
    return finish_checkpoint(run_, step);
  }
  Names names() const {
    Names all;
    for (const auto& entry : fs::directory_iterator(run_ / "checkpoints")) all.push_back(entry.path().filename());
    std::sort(all.begin(), all.end());
    return all;
  }

  const fs::path runs_ = fs::temp_directory_path() / ("tutti-checkpoint-folder-test-" + std::to_string(::getpid()));
  const fs::path run_ = runs_ / "run";
};

TEST_F(CheckpointFolder, ReplacesACheckpointOfTheSameStep) {
  save(7, "old");
  const fs::path folder = save(7, "new");
  EXPECT_EQ(folder, run_ / "checkpoints/step-0000000007");
  EXPECT_EQ(read_file(folder / kStateFile), "new");
  EXPECT_EQ(names(), (Names{"step-0000000007"}));
}

TEST_F(CheckpointFolder, KeepsTheNewest) {
  for (const int64_t step : std::vector<int64_t>{5, 900, 10000000000}) save(step);
  keep_newest(run_, 2);
  EXPECT_EQ(names(), (Names{"step-0000000900", "step-10000000000"}));
}

TEST_F(CheckpointFolder, LosesWhatKilledSavesHaveLeft) {
  save(4);
  write(6, "half");
  // What a kill leaves where names cannot be exchanged: once before, once after the new one has its name.
  put(run_ / "checkpoints/replaced-step-0000000002", "whole");
  put(run_ / "checkpoints/replaced-step-0000000004", "older");
  remove_leftovers(run_);
  EXPECT_EQ(names(), (Names{"step-0000000002", "step-0000000004"}));
  EXPECT_EQ(read_file(run_ / "checkpoints/step-0000000004" / kStateFile), "{}");
}

TEST_F(CheckpointFolder, SetsAsideWhatLiesBeyondTheOneThatARunWentBackTo) {
  for (const int step : {1, 2, 3, 4}) save(step);
  EXPECT_TRUE(set_others_aside(run_, run_ / "checkpoints/step-0000000004").empty());
  EXPECT_EQ(set_others_aside(run_, run_ / "checkpoints/step-0000000002/").size(), 2U);
  EXPECT_EQ(names(),
            (Names{"abandoned-step-0000000003", "abandoned-step-0000000004", "step-0000000001", "step-0000000002"}));
  // Twice the same step.
  save(3);
  set_others_aside(run_, run_ / "checkpoints/step-0000000002");
  EXPECT_EQ(names(), (Names{"abandoned-step-0000000003", "abandoned-step-0000000003-2", "abandoned-step-0000000004",
                            "step-0000000001", "step-0000000002"}));
}

TEST_F(CheckpointFolder, SetsAllAsideForARunThatComesFromElsewhere) {
  save(1);
  put(runs_ / "other/checkpoints/step-0000000001", "{}");
  EXPECT_EQ(set_others_aside(run_, runs_ / "other/checkpoints/step-0000000001").size(), 1U);
  EXPECT_EQ(names(), (Names{"abandoned-step-0000000001"}));
  save(5);
  EXPECT_EQ(set_others_aside(run_, run_ / "checkpoints/abandoned-step-0000000001").size(), 1U);
}

TEST_F(CheckpointFolder, FindsARunsCheckpointsNewestFirstAndOneByItsFolder) {
  save(1);
  save(2);
  put(run_ / "checkpoints/abandoned-step-0000000003", "{}");
  const ResumeChoice all = find_checkpoints("run", runs_);
  EXPECT_FALSE(all.is_one);
  EXPECT_EQ(all.folders,
            (std::vector<fs::path>{run_ / "checkpoints/step-0000000002", run_ / "checkpoints/step-0000000001"}));
  EXPECT_EQ(find_checkpoints(run_, {}).folders, all.folders);
  for (const char* name : {"step-0000000001", "abandoned-step-0000000003"}) {
    const ResumeChoice one = find_checkpoints(run_ / "checkpoints" / name, runs_);
    EXPECT_TRUE(one.is_one);
    EXPECT_EQ(one.folders.size(), 1U);
    EXPECT_EQ(run_of(one.folders[0]), run_);
  }
  EXPECT_EQ(run_of(runs_ / "elsewhere"), "");
  EXPECT_THROW(find_checkpoints("rum", runs_), Error);
}

TEST_F(CheckpointFolder, ReadsAStateThatIsAsItWasWrittenAndNoOther) {
  const nlohmann::json state = {{"step", 12}, {"lr", 0.1}, {"name", "\xff"}, {"sha256", {{"model", "ab"}}}};
  const fs::path folder = save(12, state_text(state));
  EXPECT_EQ(read_state(folder).at("step"), 12);
  EXPECT_EQ(read_state(folder).at("sha256").size(), 1);
  std::string text = read_file(folder / kStateFile);
  text[text.find("12")] = '3';  // a bit
  put(folder, text);
  EXPECT_THROW(read_state(folder), Error);
  put(folder, R"({"step": 12, "sha256": {"model": "ab"}})");  // of an earlier version
  EXPECT_EQ(read_state(folder).at("step"), 12);
}

TEST_F(CheckpointFolder, TakesOptionsFromTheNewestStateThatCanBeRead) {
  save(1, R"({"options": {"batch": 8}})");
  EXPECT_EQ(saved_options(find_checkpoints("run", runs_)).batch, 8);
  save(2, R"({"options": {"ba)");
  EXPECT_EQ(saved_options(find_checkpoints("run", runs_)).batch, 8);
  EXPECT_THROW(saved_options(find_checkpoints(run_ / "checkpoints/step-0000000002", runs_)), Error);
  for (const char* wrong : {R"({"options": {"batch": "many"}})", R"({"options": 3})", "[]"}) {
    save(3, wrong);
    EXPECT_THROW(saved_options(find_checkpoints(run_ / "checkpoints/step-0000000003", runs_)), Error) << wrong;
  }
}

}  // namespace
}  // namespace tutti
