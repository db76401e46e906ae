#include "sim/measured_runs.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "plan/strategies/plans.h"
#include "sim/own_engine.h"
#include "sim/written_run.h"
#include "tutti/error.h"
#include "tutti/strategy.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class MeasuredRuns : public testing::Test {
 protected:
  void TearDown() override { remove_tree(folder_); }
  const fs::path folder_ = fs::temp_directory_path() / ("tutti-runs-test-" + std::to_string(::getpid()));
};

TEST_F(MeasuredRuns, AreGroupedByEverythingButTheStrategy) {
  write_run(folder_ / "a", "bsp", 0.020);
  write_run(folder_ / "b", "wfbp", 0.010);
  write_run(folder_ / "c", "wfbp", 0.012);
  std::vector<std::string> left_out;
  const auto groups = read_run_groups({folder_}, left_out);
  ASSERT_EQ(groups.size(), 1U);
  EXPECT_EQ(groups[0].model, "some-net");
  EXPECT_EQ(groups[0].place(), "shm");
  ASSERT_EQ(groups[0].runs.size(), 2U);
  EXPECT_DOUBLE_EQ(groups[0].runs[0].step_s, 0.020);
  EXPECT_EQ(groups[0].runs[1].runs, 2);
  EXPECT_TRUE(left_out.empty());
}

TEST_F(MeasuredRuns, TakeTheNetworkFromTheSweep) {
  write_run(folder_ / "cells" / "x.1", "bsp", 0.020);
  std::ofstream(folder_ / "cells.jsonl") << R"({"record":"cell","cell":"x.1","config":{"network":"10gbe"}})" << '\n';
  std::vector<std::string> left_out;
  EXPECT_EQ(read_run_groups({folder_}, left_out).at(0).place(), "shm, 10gbe");
}

TEST_F(MeasuredRuns, WithoutMeasuredLinksAreNamedAndLeftOut) {
  write_run(folder_ / "a", "bsp", 0.020, false);
  std::vector<std::string> left_out;
  EXPECT_THROW(read_run_groups({folder_}, left_out), UsageError);
  EXPECT_EQ(left_out.size(), 1U);
}

TEST_F(MeasuredRuns, PassOverRunsThatDidNotEndAndNameDamagedOnes) {
  write_run(folder_ / "a", "bsp", 0.020);
  fs::create_directories(folder_ / "b");
  std::ofstream(folder_ / "b" / "records.jsonl") << R"({"record":"run","config":{"ranks":2}})"
                                                 << "\n{\"record\":\"pl";
  std::vector<std::string> left_out;
  EXPECT_EQ(read_run_groups({folder_}, left_out).size(), 1U);
  std::ofstream(folder_ / "b" / "records.jsonl") << R"({"record":"run","config":{}})"
                                                 << "\n"
                                                 << R"({"record":"plan"})"
                                                 << "\n"
                                                 << R"({"record":"summary"})"
                                                 << "\n";
  try {
    read_run_groups({folder_}, left_out);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("b/records.jsonl"), std::string::npos) << error.what();
  }
  EXPECT_THROW(read_run_groups({folder_ / "missing"}, left_out), UsageError);
}

TEST_F(MeasuredRuns, AreReadOneByOneWithTheirSizes) {
  write_run(folder_ / "a", "buckets", 0.020);
  write_run(folder_ / "b", "auto", 0.010);
  const RecordedRun fixed = read_recorded_run(folder_ / "a" / "records.jsonl");
  EXPECT_EQ(fixed.plan.strategy, "buckets");
  EXPECT_EQ(fixed.settings, "--bucket-mb 4");
  EXPECT_EQ(fixed.profile.gradients.size(), 4U);
  ASSERT_TRUE(fixed.links);
  EXPECT_EQ(fixed.batch, 8);
  EXPECT_EQ(fixed.step_s, 0.020);
  const RecordedRun chosen = read_recorded_run(folder_ / "b" / "records.jsonl");
  EXPECT_EQ(chosen.plan.strategy, "buckets");
  EXPECT_EQ(chosen.settings, "--bucket-mb 4");  // not the 25 MiB that it was not asked to use
}

TEST_F(MeasuredRuns, WithoutAnEndHaveNoStepTime) {
  write_run(folder_ / "a", "bsp", 0.020);
  const std::string records = read_file(folder_ / "a" / "records.jsonl");
  std::ofstream(folder_ / "a" / "records.jsonl") << records.substr(0, records.find(R"({"record":"epoch")"));
  EXPECT_FALSE(read_recorded_run(folder_ / "a" / "records.jsonl").step_s);
  std::ofstream(folder_ / "a" / "records.jsonl") << R"({"record":"run"})" << '\n';
  EXPECT_THROW(read_recorded_run(folder_ / "a" / "records.jsonl"), Error);
}

TEST_F(MeasuredRuns, SayWhatCouldHaveRunInTheirPlace) {
  const auto rules = [&](const json& config) {
    write_run(folder_ / "a", "bsp", 0.020, true, config);
    return read_recorded_run(folder_ / "a" / "records.jsonl").rules;
  };
  const CandidateRules plain = rules(json::object());
  EXPECT_TRUE(plain.allows(find_strategy("dear")));
  EXPECT_FALSE(plain.allows(find_strategy("wfbp-ps")));  // no run measured what servers take
  EXPECT_FALSE(rules({{"wire", "topk"}}).allows(find_strategy("dear")));
  Plan plan = make_dear_plan(some_profile(), {}, 2, {});
  plain.adapt(plan);
  EXPECT_EQ(plan.barrier, Barrier::next_forward);
  rules({{"clip_norm", 1.0}}).adapt(plan);
  EXPECT_EQ(plan.barrier, Barrier::optimizer_step);
}

TEST(EngineCosts, AreFoundFromRunsThatHadThem) {
  Software real = engine_software();
  real.launch_s = 300e-6;
  real.slowdown = 0.3;
  RunGroup group;
  group.ranks = 2;
  group.profile = some_profile();
  group.links = measured_links();
  for (const char* strategy : {"bsp", "wfbp", "buckets", "mgwfbp", "dear", "zero1"}) {
    const Plan plan = find_strategy(strategy).make_plan(group.profile, group.links, 2, {});
    group.runs.push_back(
        {strategy, plan, simulate_run(plan, group.profile, cluster_of_run(group.links, 2, real)).step_s});
  }
  const EngineCosts costs = fit_engine_costs({&group});
  EXPECT_NEAR(costs.software.launch_s, 300e-6, 150e-6);
  EXPECT_NEAR(costs.software.slowdown, 0.3, 0.1);
  for (const RunPrediction& prediction : predict_runs(group, costs.software))
    EXPECT_NEAR(prediction.error(), 0, 0.02) << prediction.run->strategy;
}

}  // namespace
}  // namespace tutti
