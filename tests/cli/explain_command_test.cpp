// `tutti train --trace` and `tutti explain` as people use them: real processes, real files.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "support/command.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class ExplainCommand : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("tutti-explain-command-test-" + std::to_string(::getpid()));
    remove_tree(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { remove_tree(folder_); }

  CommandResult tutti(const std::string& arguments) const {
    return run_command("cd " + folder_.string() + " && " + TUTTI_BINARY + " " + arguments);
  }
  CommandResult train(const std::string& arguments) const {
    return tutti("train --train-size 300 --test-size 100 --batch 16 --steps 12 --threads 1 --device cpu " + arguments);
  }
  static bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  }

  fs::path folder_;
};

TEST_F(ExplainCommand, WritesATraceOfEveryTransferOfEveryRankAndStep) {
  // 10 steps make an epoch: the window goes over its end, so the test and the checkpoint of step 8 are in it.
  const CommandResult result = train(
      "--ranks 2 --strategy wfbp --name first --trace runs/first/trace.json --trace-steps 6 --checkpoint-steps 8");
  ASSERT_EQ(result.exit_code, 0) << result.output;
  EXPECT_TRUE(contains(result.output, "Trace of steps 6 to 11: runs/first/trace.json")) << result.output;
  const json trace = json::parse(read_file(folder_ / "runs/first/trace.json"));

  std::size_t transfers = 0;
  std::ifstream records(folder_ / "runs/first/records.jsonl");
  for (std::string line; std::getline(records, line);)
    if (const json record = json::parse(line); record["record"] == "plan")
      transfers = record["plan"]["transfers"].size();
  EXPECT_EQ(transfers, 8u);

  std::map<std::string, int> names;
  std::map<std::string, int> seen;  // "rank step transfer"
  std::map<std::pair<int, int>, std::vector<std::pair<int64_t, int64_t>>> spans;
  for (const json& event : trace.at("traceEvents")) {
    ++names[event.at("ph") == "M" ? event.at("args").at("name") : event.at("name")];
    if (event.at("ph") != "X") continue;
    const auto ns = [](const json& us) { return static_cast<int64_t>(std::llround(us.get<double>() * 1000)); };
    const int64_t begin = ns(event.at("ts"));
    spans[{event.at("pid"), event.at("tid")}].emplace_back(begin, begin + ns(event.at("dur")));
    if (event.at("cat") != "transfer") continue;
    const json& arguments = event.at("args");
    ++seen[event.at("pid").dump() + " " + arguments.at("step").dump() + " " + arguments.at("transfer").dump()];
    EXPECT_GE(arguments.at("startable_us_before").get<double>(), 0);
  }
  for (const char* name : {"rank 0", "rank 1", "compute", "communication", "data wait", "forward", "conv1", "fc2",
                           "backward", "optimizer", "step 5", "step 10", "checkpoint", "evaluation"})
    EXPECT_GT(names[name], 0) << name;
  for (int rank = 0; rank < 2; ++rank)
    for (int step = 5; step < 11; ++step)
      for (std::size_t transfer = 0; transfer < transfers; ++transfer)
        EXPECT_EQ(seen[std::to_string(rank) + " " + std::to_string(step) + " " + std::to_string(transfer)], 1)
            << "rank " << rank << ", step " << step << ", transfer " << transfer;
  for (const auto& [thread, all] : spans)
    for (const auto& [begin, end] : all)
      for (const auto& [other_begin, other_end] : all)
        EXPECT_TRUE(end <= other_begin || other_end <= begin || (begin <= other_begin && other_end <= end) ||
                    (other_begin <= begin && end <= other_end))
            << "half overlapping spans on rank " << thread.first << ", thread " << thread.second;

  const CommandResult explained = tutti("explain first");
  EXPECT_EQ(explained.exit_code, 0) << explained.output;
  for (const char* part :
       {"mnist-cnn on 2 ranks, strategy wfbp: steps 6 to 11", "exposed communication", "in 8 transfers"})
    EXPECT_TRUE(contains(explained.output, part)) << explained.output;
  EXPECT_EQ(tutti("explain runs/first").output, explained.output);
}

TEST_F(ExplainCommand, NeedsNoTraceAndWorksAcrossSteps) {
  ASSERT_EQ(train("--ranks 2 --strategy dear --name second --no-eval").exit_code, 0);
  const CommandResult explained = tutti("explain second");
  EXPECT_EQ(explained.exit_code, 0) << explained.output;
  EXPECT_TRUE(contains(explained.output, "strategy dear: steps 6 to 12")) << explained.output;
}

TEST_F(ExplainCommand, ExplainsOneRank) {
  ASSERT_EQ(train("--ranks 1 --name alone --no-eval").exit_code, 0);
  const CommandResult explained = tutti("explain alone");
  EXPECT_EQ(explained.exit_code, 0) << explained.output;
  EXPECT_TRUE(contains(explained.output, "One rank: nothing is communicated.")) << explained.output;
}

TEST_F(ExplainCommand, SaysSoWhenThereIsNothingToExplain) {
  const CommandResult missing = tutti("explain nothing");
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_TRUE(contains(missing.output, "no run 'nothing'")) << missing.output;

  const CommandResult run = train("--ranks 1 --name short --no-eval --steps 4 --trace short.json");
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_TRUE(contains(run.output, "short.json is not written")) << run.output;
  EXPECT_FALSE(fs::exists(folder_ / "short.json"));
  const CommandResult too_short = tutti("explain short");
  EXPECT_EQ(too_short.exit_code, 1);
  EXPECT_TRUE(contains(too_short.output, "too short (4 steps)")) << too_short.output;

  std::ofstream(folder_ / "runs/short/records.jsonl") << "{\"record\":\"run\"}\nnonsense\n{\"record\":\"epoch\"}\n";
  EXPECT_TRUE(contains(tutti("explain short").output, "line 2")) << tutti("explain short").output;
  std::ofstream(folder_ / "runs/short/records.jsonl") << "{\"record\":\"explain\",\"steps\":3}\n";
  const CommandResult foreign = tutti("explain short");
  EXPECT_EQ(foreign.exit_code, 1);
  EXPECT_TRUE(contains(foreign.output, "not as `tutti train` writes it")) << foreign.output;
}

TEST_F(ExplainCommand, RefusesATraceThatCannotBeWrittenBeforeTraining) {
  const CommandResult result = train("--ranks 2 --trace nowhere/trace.json");
  EXPECT_EQ(result.exit_code, 2) << result.output;
  EXPECT_TRUE(contains(result.output, "there is no folder nowhere")) << result.output;
  EXPECT_EQ(train("--trace t.json --trace-steps 0").exit_code, 2);
}

}  // namespace
}  // namespace tutti
