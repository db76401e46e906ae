#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <sstream>

#include "report/explain.h"
#include "support/text.h"
#include "tutti/error.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

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

RunRecord run_record(const std::string& device = "cpu") {
  RunRecord run;
  run.config = {{"model", "mnist-cnn"}, {"wire", "fp32"}};
  run.config["device_used"] = device;
  return run;
}

std::string explain_records(const std::vector<Record>& records) {
  const fs::path file = fs::temp_directory_path() / ("tutti-explain-test-" + std::to_string(::getpid()) + ".jsonl");
  RecordWriter writer;
  writer.add_sink(json_lines(file.string()));
  for (const Record& record : records) writer.add(record);
  try {
    const std::string text = describe(read_explanation(file));
    fs::remove(file);
    return text;
  } catch (const Error&) {
    fs::remove(file);
    throw;
  }
}

template <typename Function>
std::string complaint_of(Function function) {
  try {
    function();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Explain, HasTheSameFactsAsJson) {
  Explanation explanation;
  explanation.config = run_record().config.get<RunConfig>();
  explanation.breakdown = breakdown_of(2);
  explanation.step_s = {1, 3, 2};
  explanation.epochs = 4;
  explanation.straggled_epochs = {{1, 3}};
  const nlohmann::json facts = to_json(explanation);
  EXPECT_EQ(facts["model"], "mnist-cnn");
  EXPECT_EQ(facts["median_step_s"], 2);
  EXPECT_EQ(facts["mean"]["step_s"], mean_of(explanation.breakdown.ranks).step_s);
  EXPECT_EQ(facts["breakdown"]["ranks"].size(), 2U);
  EXPECT_EQ(facts["stragglers"][0]["rank"], 1);
}

TEST(Explain, PrintsPartsThatAddUpToTheStep) {
  const std::string text = explain_records({run_record(), breakdown_of(2)});
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
  const std::string text = explain_records({run_record(), breakdown_of(2)});
  EXPECT_TRUE(contains(text, "mnist-cnn on 2 ranks, strategy wfbp: steps 6 to 25")) << text;
  EXPECT_TRUE(contains(text, "16.000 ms per step in 2 transfers, 75 % of it hidden")) << text;
  EXPECT_TRUE(contains(text, "exposed most: transfer 1 'conv1.weight' (all_reduce of 1.0 KB): 3.000 of its 4.000 ms"))
      << text;
  EXPECT_TRUE(contains(text, "then:         transfer 0 'fc2.weight'")) << text;
}

TEST(Explain, TakesTheLastPartOfAResumedRun) {
  StepBreakdown older = breakdown_of(2);
  older.first_step = 100;
  EXPECT_TRUE(contains(explain_records({run_record(), older, run_record(), breakdown_of(2)}), "steps 6 to 25"));
  // What an earlier part measured does not describe the last one.
  EXPECT_NE(complaint_of([&] { explain_records({run_record(), older, run_record()}); }), "");
}

TEST(Explain, ExplainsOneRankWithoutCommunication) {
  StepBreakdown alone = breakdown_of(1);
  alone.transfers.clear();
  alone.ranks[0].compute_s += alone.ranks[0].bandwidth_s;
  alone.ranks[0].bandwidth_s = alone.ranks[0].comm_s = 0;
  const std::string text = explain_records({run_record(), alone});
  EXPECT_TRUE(contains(text, "One rank: nothing is communicated.")) << text;
  EXPECT_FALSE(contains(text, "slowest rank")) << text;
}

TEST(Explain, SaysWhoseTimesThoseOfAGpuAre) {
  StepBreakdown repeated = breakdown_of(1);
  repeated.is_of_device = true;
  EXPECT_TRUE(contains(explain_records({run_record("cuda:0"), repeated}), "These are times of the GPU."));
  EXPECT_TRUE(contains(explain_records({run_record("cuda:0"), breakdown_of(1)}), "times of the host"));
  EXPECT_FALSE(contains(explain_records({run_record(), breakdown_of(1)}), "GPU"));
}

TEST(Explain, SaysSoWhenARunDoesNotSay) {
  const std::string error = complaint_of([] { explain_records({run_record()}); });
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

}  // namespace
}  // namespace tutti
