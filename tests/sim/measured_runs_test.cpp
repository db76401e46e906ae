#include "sim/measured_runs.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "plan/profiles.h"
#include "plan/strategy.h"
#include "sim/own_engine.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

Links measured_links() {
  Links links;
  std::vector<LinkSample> samples;
  for (int64_t bytes = 1 << 10; bytes <= 64 << 20; bytes *= 4)
    samples.push_back({bytes, 100e-6 + 1e-9 * static_cast<double>(bytes)});
  links.all_reduce = fit_link_cost(samples);
  return links;
}

/// Computation about as long as communication.
Profile some_profile() {
  Profile profile = profile_of({1'000'000, 2'000'000, 500'000, 100});
  for (GradientProfile& gradient : profile.gradients) {
    gradient.ready_s *= 4;
    gradient.needed_s *= 4;
  }
  profile.forward_s *= 4;
  profile.backward_s *= 4;
  return profile;
}

/// Writes the records of a run whose steps took `step_s` after a slow start.
void write_run(const fs::path& folder, const std::string& strategy, double step_s, bool with_links = true) {
  const Profile profile = some_profile();
  const Plan plan = find_strategy(strategy == "auto" ? "bsp" : strategy).make_plan(profile, measured_links(), 2, {});
  json plan_record = {{"record", "plan"}, {"profile", profile}, {"plan", plan}};
  if (with_links) plan_record["links"] = measured_links();
  const json config = {{"strategy", strategy}, {"model", "some-net"}, {"batch", 8}, {"ranks", 2}};
  fs::create_directories(folder);
  std::ofstream(folder / "records.jsonl")
      << json({{"record", "run"}, {"config", config}, {"nodes", json::array({json::object()})}}) << '\n'
      << plan_record << '\n'
      << json({{"record", "epoch"}, {"step_s", {9.0, 8.0, step_s, step_s * 1.1, step_s * 0.9}}}) << '\n'
      << json({{"record", "summary"}, {"transport", "shm"}, {"warm_up_steps", 2}}) << '\n';
}

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
