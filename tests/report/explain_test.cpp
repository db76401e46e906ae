#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "report/explain.h"
#include "support/text.h"
#include "tutti/error.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// Steps of 20 ms: 12 compute, 1 data, 2 optimizer, 1 other and 4 exposed, all of them bandwidth.
StepBreakdown breakdown_of(int ranks) {
  StepBreakdown result;
  result.first_step = 5;
  result.steps = 20;
  result.strategy = "wfbp";
  result.startup_from = "links";
  RankBreakdown rank;
  rank.step_s = 0.020;
  rank.compute_s = 0.012;
  rank.data_wait_s = 0.001;
  rank.optimizer_s = 0.002;
  rank.bandwidth_s = 0.004;
  rank.other_s = 0.001;
  rank.comm_s = 0.016;
  result.ranks.assign(static_cast<std::size_t>(ranks), rank);
  result.transfers = {{"fc2.weight", Operation::all_reduce, 40'000, 0.012, 0, 0.001},
                      {"conv1.weight", Operation::all_reduce, 1'000, 0.004, 0.003, 0.003}};
  return result;
}

json record(const StepBreakdown& breakdown) {
  json result = breakdown;
  result["record"] = "explain";
  return result;
}

json run_record() { return {{"record", "run"}, {"config", {{"model", "mnist-cnn"}, {"wire", "fp32"}}}}; }

template <typename Function>
std::string complaint_of(Function function) {
  try {
    function();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Explain, PrintsPartsThatAddUpToTheStep) {
  const std::string text = explain({run_record(), record(breakdown_of(2))});
  double sum_ms = 0, sum_percent = 0, step_ms = 0, exposed_ms = 0, exposed_parts_ms = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.size() < 55 || line.substr(line.size() - 2) != " %") continue;
    const double ms = std::stod(line.substr(34, 12)), percent = std::stod(line.substr(46, 7));
    if (line.rfind("  ", 0) == 0) {
      exposed_parts_ms += ms;
    } else if (line.rfind("step", 0) == 0) {
      step_ms = ms;
    } else {
      sum_ms += ms;
      sum_percent += percent;
      if (line.rfind("exposed", 0) == 0) exposed_ms = ms;
    }
  }
  EXPECT_DOUBLE_EQ(step_ms, 20);
  EXPECT_NEAR(sum_ms, 20, 1e-9);
  EXPECT_NEAR(sum_percent, 100, 1e-9);
  EXPECT_DOUBLE_EQ(exposed_ms, 4);
  EXPECT_NEAR(exposed_parts_ms, 4, 1e-9);
}

TEST(Explain, SaysWhatWasHiddenAndWhichTransfersWereExposedMost) {
  const std::string text = explain({run_record(), record(breakdown_of(2))});
  EXPECT_TRUE(contains(text, "mnist-cnn on 2 ranks, strategy wfbp: steps 6 to 25")) << text;
  EXPECT_TRUE(contains(text, "16.000 ms per step in 2 transfers, 75 % of it hidden")) << text;
  EXPECT_TRUE(contains(text, "exposed most: transfer 1 'conv1.weight' (all_reduce of 1.0 KB): 3.000 of its 4.000 ms"))
      << text;
  EXPECT_TRUE(contains(text, "then:         transfer 0 'fc2.weight'")) << text;
}

TEST(Explain, TakesTheLastPartOfAResumedRun) {
  StepBreakdown older = breakdown_of(2);
  older.first_step = 100;
  EXPECT_TRUE(contains(explain({run_record(), record(older), run_record(), record(breakdown_of(2))}), "steps 6 to 25"));
  // What an earlier part measured does not describe the last one.
  EXPECT_NE(complaint_of([&] { explain({run_record(), record(older), run_record()}); }), "");
}

TEST(Explain, ExplainsOneRankWithoutCommunication) {
  StepBreakdown alone = breakdown_of(1);
  alone.transfers.clear();
  alone.ranks[0].compute_s += alone.ranks[0].bandwidth_s;
  alone.ranks[0].bandwidth_s = alone.ranks[0].comm_s = 0;
  const std::string text = explain({run_record(), record(alone)});
  EXPECT_TRUE(contains(text, "One rank: nothing is communicated.")) << text;
  EXPECT_FALSE(contains(text, "slowest rank")) << text;
}

TEST(Explain, SaysSoWhenARunDoesNotSay) {
  const std::string error = complaint_of([] { explain({run_record()}); });
  EXPECT_TRUE(contains(error, "do not say where the time of a step went")) << error;
}

TEST(Advice, NamesTheRankThatComputesSlower) {
  StepBreakdown slow = breakdown_of(3);
  for (RankBreakdown& rank : slow.ranks) std::swap(rank.bandwidth_s, rank.slowest_rank_s);
  slow.ranks[1].compute_s = 0.016;
  slow.ranks[1].slowest_rank_s = 0;
  slow.ranks[1].caused_s = 0.008;
  EXPECT_TRUE(contains(advice(slow, "fp32"), "waiting for rank 1, which computes slower (16.000 ms"))
      << advice(slow, "fp32");
  slow.ranks[1].compute_s = 0.012;
  EXPECT_TRUE(contains(advice(slow, "fp32"), "rank 1, which comes late though"));
  slow.ranks[1].caused_s = slow.ranks[2].caused_s = 0.004;
  EXPECT_TRUE(contains(advice(slow, "fp32"), "ranks take turns"));
}

TEST(Advice, FitsWhatTheExposedTimeIsMadeOf) {
  StepBreakdown result = breakdown_of(2);
  EXPECT_TRUE(contains(advice(result, "fp32"), "--wire bf16"));
  EXPECT_FALSE(contains(advice(result, "bf16"), "--wire"));
  StepBreakdown merged = result;
  merged.transfers.pop_back();
  EXPECT_TRUE(contains(advice(merged, "fp32"), "a smaller --bucket-mb"));
  result.strategy = "bsp";
  EXPECT_TRUE(contains(advice(result, "fp32"), "--strategy buckets"));
  for (RankBreakdown& rank : result.ranks) std::swap(rank.bandwidth_s, rank.startup_s);
  EXPECT_TRUE(contains(advice(result, "fp32"), "start-up of 2 messages: try --strategy mgwfbp or buckets"));
  result.strategy = "mgwfbp";  // no use in naming what is in use
  EXPECT_FALSE(contains(advice(result, "fp32"), "--strategy"));
  for (RankBreakdown& rank : result.ranks) std::swap(rank.startup_s, rank.scheduling_s);
  EXPECT_TRUE(contains(advice(result, "fp32"), "fewer --threads"));
  for (RankBreakdown& rank : result.ranks) std::swap(rank.scheduling_s, rank.compute_s);
  for (RankBreakdown& rank : result.ranks) rank.scheduling_s = 0.0001;
  EXPECT_TRUE(contains(advice(result, "fp32"), "communication costs little"));
  for (RankBreakdown& rank : result.ranks) rank.data_wait_s = 0.012;
  EXPECT_TRUE(contains(advice(result, "fp32"), "more --workers"));
}

TEST(Advice, KeepsQuietWhenNothingIsClear) {
  StepBreakdown mixed = breakdown_of(2);
  for (RankBreakdown& rank : mixed.ranks)
    rank.slowest_rank_s = rank.startup_s = rank.bandwidth_s = rank.scheduling_s = 0.001;
  EXPECT_EQ(advice(mixed, "fp32"), "");
}

class Records : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("tutti-explain-test-" + std::to_string(::getpid()));
    fs::create_directories(folder_ / "first");
  }
  void TearDown() override { remove_tree(folder_); }
  fs::path write(const std::string& text) const {
    std::ofstream(folder_ / "first/records.jsonl") << text;
    return folder_ / "first/records.jsonl";
  }
  fs::path folder_;
};

TEST_F(Records, AreReadWithoutAHalfWrittenLastLine) {
  EXPECT_EQ(read_records(write("{\"record\":\"run\"}\n{\"record\":\"epoch\"}\n{\"record\":\"summ")).size(), 2u);
  EXPECT_EQ(read_records(write("")).size(), 0u);
}

TEST_F(Records, NameTheLineThatIsDamaged) {
  for (const char* line : {"{\"record\":\"ep", "[1, 2]", "", "{\"step\":1}", "{\"record\":7}"}) {
    const fs::path file = write(std::string("{\"record\":\"run\"}\n") + line + "\n{\"record\":\"epoch\"}\n");
    const std::string error = complaint_of([&] { read_records(file); });
    EXPECT_TRUE(contains(error, "records.jsonl, line 2: this is not a record")) << line << ": " << error;
  }
}

TEST_F(Records, AreFoundByNameFolderOrFile) {
  const fs::path file = write("");
  EXPECT_EQ(find_records("first", folder_), file);
  EXPECT_EQ(find_records((folder_ / "first").string(), "elsewhere"), file);
  EXPECT_EQ(find_records(file.string(), "elsewhere"), file);
  EXPECT_TRUE(contains(complaint_of([&] { find_records("frist", folder_); }), "did you mean 'first'?"));
  EXPECT_TRUE(contains(complaint_of([&] { find_records("first", "elsewhere"); }), "no run 'first'"));
}

}  // namespace
}  // namespace tutti
