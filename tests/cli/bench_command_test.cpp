// `tutti bench` as a whole: the sweeps that come with it, and a tiny one with real training runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/files.h"
#include "support/command.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

CommandResult tutti(const std::string& arguments) { return run_command(TUTTI_BINARY " " + arguments); }

TEST(BenchCommand, TeachesWithExamples) {
  const CommandResult result = tutti("bench --help");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.output, AllOf(HasSubstr("Examples:"), HasSubstr("--resume"), HasSubstr("A sweep file:")));
}

TEST(BenchCommand, ListsASweepForEachPublishedStudy) {
  const CommandResult result = tutti("bench --list");
  EXPECT_EQ(result.exit_code, 0) << result.output;
  for (const char* const name :
       {"unet-workers", "resnet-mnist", "transformer-sst5", "strategies-networks", "mnist-nodes", "bigmnist-nodes"})
    EXPECT_THAT(result.output, HasSubstr(std::string("\n") + name + " ")) << name;
}

/// The number of cells.
std::string size_of(const std::string& sweep) {
  const CommandResult result = tutti("bench " + sweep + " --dry-run");
  EXPECT_EQ(result.exit_code, 0) << result.output;
  const std::string text = result.output.substr(0, result.output.size() - 1);
  return text.substr(text.rfind('\n') + 1);
}

TEST(BenchCommand, HasTheCellsOfThePublishedTables) {
  EXPECT_EQ(size_of("unet-workers"), "16 cells");
  EXPECT_EQ(size_of("resnet-mnist"), "21 cells");                 // 3 models × (4 + 3)
  EXPECT_EQ(size_of("transformer-sst5"), "5 cells");              // 4 + 1
  EXPECT_EQ(size_of("mnist-nodes"), "7 cells");                   // 4 + 3
  EXPECT_EQ(size_of("bigmnist-nodes"), "28 cells");               // 4 × (4 + 3)
  EXPECT_EQ(size_of("strategies-networks"), "850 cells");         // 5 × 2 models × (7 × 3 × 4 + 1)
  EXPECT_EQ(size_of("strategies-networks --quick"), "43 cells");  // 7 × 3 × 2 + 1
  EXPECT_EQ(size_of("auto-cases --quick"), "5 cells");            // one model, one link, 5 strategies
}

TEST(BenchCommand, RefusesASweepWithAValueThatNoOptionHasBeforeItMakesAnything) {
  const fs::path file = ::testing::TempDir() + "misspelt_" + std::to_string(::getpid()) + ".yaml";
  std::ofstream(file) << "title: tiny\naxes:\n  strategy: [bsp, wfpb]\noptions: {steps: 2}\n";
  const CommandResult result = tutti("bench " + file.string() + " -o " + file.string() + ".sweep");
  EXPECT_EQ(result.exit_code, 2) << result.output;
  EXPECT_THAT(result.output, HasSubstr(".yaml:3: unknown strategy 'wfpb'; did you mean 'wfbp'?"));
  EXPECT_FALSE(fs::exists(file.string() + ".sweep"));
  fs::remove(file);
}

TEST(BenchCommand, TrainsTheCellsOfASweepAndRecordsTheirSteps) {
  const fs::path root = ::testing::TempDir() + "bench_command_" + std::to_string(::getpid());
  fs::create_directories(root);
  std::ofstream(root / "tiny.yaml")
      << "title: tiny\n"
         "axes: {strategy: [bsp, dear, wfbp], network: [slow], ranks: [2]}\n"
         "networks: {slow: {gbps: 1, startup-us: 500}}\n"
         "options: {model: mnist-cnn, data: digits, train-size: 64, test-size: 16, batch: 2, "
         "steps: 14, threads: 1}\n"
         "where: [{when: {strategy: wfbp}, set: {weights: no-such-file}}]\n"
         "baseline: {ranks: 1}\n"
         "warmup-steps: 4\n"
         "trace: true\n";
  const fs::path folder = root / "sweep";
  const CommandResult result = tutti("bench " + (root / "tiny.yaml").string() + " -o " + folder.string());
  EXPECT_EQ(result.exit_code, 1) << result.output;
  EXPECT_THAT(result.output, AllOf(HasSubstr("3 of 4 cells done"), HasSubstr("no-such-file")));

  std::vector<json> records;
  std::istringstream lines(read_file(folder / "cells.jsonl"));
  for (std::string line; std::getline(lines, line);) records.push_back(json::parse(line));
  ASSERT_EQ(records.size(), 4U);
  EXPECT_EQ(records[3].at("status"), "failed");
  for (int i = 0; i < 3; ++i) {
    const json& record = records[static_cast<std::size_t>(i)];
    EXPECT_EQ(record.at("status"), "done") << record.dump(1);
    EXPECT_EQ(record.at("step_s").size(), 14U);
    EXPECT_EQ(record.at("samples_per_step"), i == 0 ? 2 : 4);
    EXPECT_EQ(record.at("epochs").size(), 1U);
    EXPECT_EQ(record.at("epochs")[0].at("ranks").size(), i == 0 ? 1U : 2U);
    EXPECT_TRUE(record.at("environment").contains("libtorch"));
    EXPECT_TRUE(record.contains("breakdown"));
    const fs::path cell = folder / "cells" / record.at("cell").get<std::string>();
    EXPECT_TRUE(fs::exists(cell / "trace.json"));
    EXPECT_FALSE(fs::exists(cell / "model.safetensors"));
  }
  EXPECT_EQ(records[0].at("baseline"), true);
  EXPECT_EQ(records[1].at("config").at("transport"), "shm");
  // 500 us for each of them: a step with at least one collective cannot be quicker.
  for (const double seconds : records[1].at("step_s").get<std::vector<double>>()) EXPECT_GE(seconds, 500e-6);
  remove_tree(root);
}

}  // namespace
}  // namespace tutti
