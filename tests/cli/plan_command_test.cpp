// `tutti plan` as a person runs it, for a run and for a cluster.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "base/files.h"
#include "sim/written_run.h"
#include "support/command.h"
#include "tutti/strategy.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

const char* const kCluster =
    "name: mine\n"
    "about: two nodes of two\n"
    "nodes:\n"
    "  - {count: 2, devices: 2, device: {name: A, tflops: 10, memory_gb_per_s: 600}}\n"
    "inside: {gb_per_s: 10, startup_us: 5}\n"
    "network: {gb_per_s: 1, startup_us: 30}\n";

/// A row of a printed table.
struct Row {
  bool is_best = false;
  int transfers = 0;
  double step_ms = 0, samples_per_s = 0, efficiency = 0, exposed_ms = 0;
};
/// By number of ranks and strategy.
using Tables = std::map<int, std::map<std::string, Row>>;

Tables tables_of(const std::string& output) {
  static const std::regex head("(\\d+) ranks?"),
      row("([* ]) (\\S+) +(\\d+) +([0-9.]+) ms +([0-9.]+) +([0-9.]+) % +([0-9.]+) ms.*");
  Tables tables;
  int ranks = 0;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (std::regex_match(line, match, head)) ranks = std::stoi(match[1]);
    if (std::regex_match(line, match, row))
      tables[ranks][match[2]] = {match[1] == "*",     std::stoi(match[3]), std::stod(match[4]),
                                 std::stod(match[5]), std::stod(match[6]), std::stod(match[7])};
  }
  return tables;
}

class PlanCommand : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("tutti-plan-test-" + std::to_string(::getpid()));
    fs::create_directories(folder_);
    write("mine.yaml", kCluster);
  }
  void TearDown() override { remove_tree(folder_); }

  void write(const std::string& name, const std::string& text) const { std::ofstream(folder_ / name) << text; }
  CommandResult tool(const std::string& arguments) const {
    return run_command("cd '" + folder_.string() + "' && " TUTTI_PLAN_TOOL " " + arguments);
  }
  /// Exit code 2, one line, and no table before it.
  void expect_refusal(const std::string& arguments, const std::string& text) const {
    const CommandResult result = tool("plan " + arguments);
    EXPECT_EQ(result.exit_code, 2) << arguments << "\n" << result.output;
    EXPECT_THAT(result.output, HasSubstr(text)) << arguments;
    EXPECT_THAT(result.output, Not(HasSubstr("samples/s"))) << arguments;
  }

  fs::path folder_;
};

TEST_F(PlanCommand, PredictsEveryStrategyAtEverySizeAndMarksTheBest) {
  const CommandResult result = tool("plan --model resnet18 --cluster mine.yaml --gpus 4,1 --batch 32 --brief");
  ASSERT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("mine: two nodes of two\nresnet18, batch 32 per rank, adamw; simulated"));
  const Tables tables = tables_of(result.output);
  ASSERT_EQ(tables.size(), 2u) << result.output;
  EXPECT_EQ(tables.at(4).size(), strategies().size());
  for (const auto& [ranks, rows] : tables) {
    int best = 0;
    for (const auto& [name, row] : rows) {
      SCOPED_TRACE(name);
      best += row.is_best ? 1 : 0;
      EXPECT_NEAR(row.samples_per_s, ranks * 32 / row.step_ms * 1e3, 1e-3 * row.samples_per_s);
      EXPECT_LT(row.exposed_ms, row.step_ms);
      if (ranks == 1) {
        EXPECT_NEAR(row.efficiency, 100, 0.1);
      }
    }
    EXPECT_EQ(best, 1);
  }
  EXPECT_EQ(tables.at(4).at("wfbp").transfers, 62);  // one per tensor
  EXPECT_EQ(tables.at(4).at("bsp").transfers, 1);
  EXPECT_LT(result.output.find("\n1 rank\n"), result.output.find("\n4 ranks\n"));
  EXPECT_THAT(result.output, Not(HasSubstr("What if")));
}

TEST_F(PlanCommand, SaysWhyAndWhatIfAtTheLargestSize) {
  const CommandResult result = tool("plan --model resnet18 --cluster mine.yaml --gpus 2,4 --batch 8 --below 0.99");
  ASSERT_EQ(result.exit_code, 0) << result.output;
  for (const char* text : {"\nAt 4 ranks: --strategy ", "46.8 MB of gradients in ", "Efficiency falls under 99 % at ",
                           "Parameter servers: ", "What if, at 4 ranks", "a network 2 times as fast",
                           "batch 16 per rank", "4 micro-batches per step"})
    EXPECT_THAT(result.output, HasSubstr(text));
}

TEST_F(PlanCommand, PlansAllPowersOfTwoUpToTheClusterAndToMoreNodes) {
  EXPECT_THAT(tables_of(tool("plan --model mnist-cnn --cluster mine.yaml --brief").output),
              ::testing::ElementsAre(::testing::Key(1), ::testing::Key(2), ::testing::Key(4)));
  const CommandResult more = tool("plan --model mnist-cnn --cluster mine.yaml --brief --nodes 8 --gpus 16,16");
  EXPECT_THAT(tables_of(more.output), ::testing::ElementsAre(::testing::Key(16))) << more.output;
}

TEST_F(PlanCommand, ListsTheShippedClusters) {
  const CommandResult result = tool("plan --cluster list");
  EXPECT_EQ(result.exit_code, 0);
  for (const char* name : {"10gbe ", "100gbib ", "100gbe ", "desk ", "h100-ib400 ", "cloud-25gbe "})
    EXPECT_THAT(result.output, HasSubstr(name));
}

TEST_F(PlanCommand, WritesTheTimelineOfTheBestStrategyAsAChromeTrace) {
  const CommandResult result =
      tool("plan --model resnet18 --cluster mine.yaml --gpus 4 --batch 32 --brief --trace trace.json");
  ASSERT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("Predicted timeline of "));
  const json trace = json::parse(read_file(folder_ / "trace.json"));
  std::map<std::string, double> microseconds;
  for (const json& event : trace.at("traceEvents"))
    if (event.value("ph", "") == "X") microseconds[event.at("name")] += event.at("dur").get<double>();
  double step_ms = 0;
  const Tables tables = tables_of(result.output);
  for (const auto& [name, row] : tables.at(4))
    if (row.is_best) step_ms = row.step_ms;
  EXPECT_GT(microseconds["forward"], 0);
  EXPECT_NEAR(microseconds["backward"], 2 * microseconds["forward"], 0.3 * microseconds["backward"]);
  EXPECT_LE(microseconds["forward"] + microseconds["backward"], step_ms * 1e3 + 10);
}

TEST_F(PlanCommand, WritesRecordsThatReportReadsAsSimulated) {
  const CommandResult result =
      tool("plan --model resnet18 --cluster mine.yaml --gpus 2,4 --batch 32 --brief --records cells.jsonl");
  ASSERT_EQ(result.exit_code, 0) << result.output;
  const Tables tables = tables_of(result.output);
  std::size_t records = 0;
  std::istringstream lines(read_file(folder_ / "cells.jsonl"));
  for (std::string line; std::getline(lines, line); ++records) {
    const json record = json::parse(line);
    EXPECT_EQ(record.at("source"), "simulated");
    const json& config = record.at("config");
    const Row& row = tables.at(config.at("ranks")).at(config.at("strategy"));
    EXPECT_NEAR(record.at("throughput").at("mean").get<double>(), row.samples_per_s, 0.051);
  }
  EXPECT_EQ(records, 2 * strategies().size());
  const CommandResult report = tool("report cells.jsonl");
  EXPECT_EQ(report.exit_code, 0) << report.output;
  EXPECT_THAT(report.output, HasSubstr("The same in all rows: source simulated, model resnet18, "));
}

TEST_F(PlanCommand, TakesProfileAndBatchOfARun) {
  fs::create_directories(folder_ / "runs/short");
  fs::create_directories(folder_ / "runs/empty");
  fs::create_directories(folder_ / "runs/damaged");
  const json profile = {{"forward_s", 0.010},
                        {"backward_s", 0.030},
                        {"gradients",
                         {{{"name", "b"}, {"parameter", 1}, {"elements", 1000}, {"ready_s", 0.02}, {"needed_s", 0.005}},
                          {{"name", "a"}, {"parameter", 0}, {"elements", 500}, {"ready_s", 0.03}, {"needed_s", 0}}}}};
  const std::string run = json({{"record", "run"}, {"config", {{"batch", 8}}}}).dump() + "\n";
  const Plan plan = find_strategy("wfbp").make_plan(profile, {}, 2, {});
  write("runs/short/records.jsonl",
        run + json({{"record", "plan"}, {"plan", plan}, {"profile", profile}}).dump() + "\n");
  write("runs/empty/records.jsonl", run);
  write("runs/damaged/records.jsonl", run + R"({"record": "plan", "plan": {}})" + "\n");
  const CommandResult result = tool("plan short --cluster mine.yaml --gpus 1 --brief");
  ASSERT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("the profile of short, batch 8 per rank"));
  EXPECT_NEAR(tables_of(result.output).at(1).at("bsp").samples_per_s, 8 / 0.040, 0.1);
  expect_refusal("short --cluster mine.yaml --batch 16", "that of its own batch");
  expect_refusal("nothing --cluster mine.yaml", "no run 'nothing'");
  for (const char* broken : {"empty", "damaged"}) {
    const CommandResult refused = tool(std::string("plan --cluster mine.yaml ") + broken);
    EXPECT_EQ(refused.exit_code, 1) << refused.output;
    EXPECT_THAT(refused.output, HasSubstr(std::string("runs/") + broken + "/records.jsonl"));
  }
}

TEST_F(PlanCommand, KeepsToTheServersGivenWhenItAsksWhatIf) {
  write("slow.yaml", std::regex_replace(kCluster, std::regex("count: 2, devices: 2"), "count: 4, devices: 1"));
  const std::string asked = "plan --model resnet50 --cluster slow.yaml --gpus 4 --batch 8 --servers ";
  for (const std::string servers : {"4", "8"}) {
    const CommandResult result = tool(asked + servers);
    ASSERT_EQ(result.exit_code, 0) << result.output;
    const std::string what_if = result.output.substr(result.output.find("What if"));
    for (const std::string other : {"4", "8"})
      EXPECT_EQ(what_if.find("--servers " + other) != std::string::npos, other == servers) << what_if;
  }
}

/// A row of the table of a run's strategies.
struct RunRow {
  bool is_best = false;
  double step_ms = 0, exposed_ms = 0;
  std::string measured, sizes;
};
std::map<std::string, RunRow> rows_of(const std::string& output) {
  static const std::regex row(
      "([* ]) (\\S+(?:, as \\w+)?) +\\d+ +([0-9.]+) ms +([0-9.]+) ms {1,12}((?:[0-9.]+ ms)?) *(.*)");
  std::map<std::string, RunRow> rows;
  std::istringstream lines(output);
  std::smatch match;
  for (std::string line; std::getline(lines, line);)
    if (std::regex_match(line, match, row))
      rows[match[2]] = {match[1] == "*", std::stod(match[3]), std::stod(match[4]), match[5], match[6]};
  return rows;
}

TEST_F(PlanCommand, PredictsAStepOfARunAsAutoAndCalibrateDo) {
  write_run(folder_ / "runs/some", "buckets", 0.050);
  const CommandResult result = tool("plan some");
  ASSERT_EQ(result.exit_code, 0) << result.output;
  auto rows = rows_of(result.output);
  // Every strategy without servers, and the run itself.
  std::size_t expected = 1;
  for (const Strategy& strategy : strategies()) expected += strategy.uses_servers ? 0 : 1;
  EXPECT_EQ(rows.size(), expected) << result.output;
  const Profile profile = some_profile();
  const double computed_ms = (profile.forward_s + profile.backward_s) * 1e3;
  const Plan bsp = make_bsp_plan(profile, {}, 2, {});
  const double sent_ms = measured_links().all_reduce.interpolated(bsp.elements * 4) * 1e3;
  EXPECT_NEAR(rows["bsp"].step_ms, computed_ms + sent_ms, 0.01);
  EXPECT_NEAR(rows["bsp"].exposed_ms, sent_ms, 0.01);
  EXPECT_EQ(rows["buckets, as run"].measured, "50.00 ms");
  EXPECT_EQ(rows["buckets, as run"].sizes, "--bucket-mb 4");
  EXPECT_EQ(rows["buckets"].measured, "");
  EXPECT_LE(rows["buckets"].step_ms, rows["buckets, as run"].step_ms);
  std::string best;
  for (const auto& [name, row] : rows)
    if (row.is_best) {
      EXPECT_EQ(best, "");
      best = name;
    }
  for (const auto& [name, row] : rows) EXPECT_LE(rows[best].step_ms, row.step_ms) << name;
  EXPECT_THAT(result.output, HasSubstr("At 2 ranks: --strategy " + best + " " + rows[best].sizes + "\n"));
  EXPECT_THAT(result.output, HasSubstr("Computation bounds it"));

  const CommandResult calibrated = tool("calibrate runs --rows");
  std::smatch match;
  ASSERT_TRUE(std::regex_search(calibrated.output, match, std::regex("buckets +50.00 ms .* ([-+0-9.]+) %\n")))
      << calibrated.output;
  EXPECT_NEAR(std::stod(match[1]), (rows["buckets, as run"].step_ms / 50 - 1) * 100, 0.1);
}

TEST_F(PlanCommand, ShowsWhatAutoMeasuredWhileItTried) {
  write_run(folder_ / "runs/some", "auto", 0.050);
  const CommandResult result = tool("plan some");
  auto rows = rows_of(result.output);
  EXPECT_EQ(rows["buckets, as run"].measured, "50.00 ms") << result.output;
  EXPECT_EQ(rows["buckets, as run"].sizes, "--bucket-mb 4");
  EXPECT_EQ(rows["wfbp"].measured, "100.00 ms");
  EXPECT_FALSE(rows["wfbp"].is_best);  // whatever was predicted
  EXPECT_FALSE(rows["buckets"].is_best && rows["buckets"].sizes == rows["buckets, as run"].sizes) << result.output;
  EXPECT_EQ(rows["bsp"].measured, "");
  EXPECT_THAT(result.output, HasSubstr("of others, of the steps in which auto tried them"));
  EXPECT_EQ(rows_of(tool("plan some --ranks 4").output)["wfbp"].measured, "");
}

TEST_F(PlanCommand, ShowsWhatAnotherStrategyOrSizeWouldMakeOfARun) {
  write_run(folder_ / "runs/some", "buckets", 0.050);
  const CommandResult dear = tool("plan some --strategy dear --bucket-mb 3");
  EXPECT_THAT(dear.output, HasSubstr("plan 'dear'"));
  EXPECT_EQ(rows_of(dear.output)["dear, as asked"].sizes, "--bucket-mb 3") << dear.output;
  EXPECT_EQ(rows_of(dear.output)["buckets, as run"].measured, "50.00 ms");
  const CommandResult four = tool("plan some --ranks 4");
  EXPECT_THAT(four.output, HasSubstr("links and computation as measured with 2 ranks"));
  EXPECT_EQ(rows_of(four.output).count("buckets, as asked"), 1u) << four.output;
  EXPECT_EQ(rows_of(four.output).count("buckets, as run"), 0u);
  EXPECT_THAT(dear.output, Not(HasSubstr("as measured with 2")));
}

TEST_F(PlanCommand, PredictsNothingWithoutMeasuredLinks) {
  write_run(folder_ / "runs/some", "buckets", 0.050, false);
  const CommandResult result = tool("plan some");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.output, HasSubstr("The run did not measure its links"));
  EXPECT_TRUE(rows_of(result.output).empty()) << result.output;
}

TEST_F(PlanCommand, TakesMoreMachinesLikeThoseWhoseLinksWereMeasured) {
  write_run(folder_ / "runs/some", "buckets", 0.050);
  const auto links = [](const std::string& nodes, const std::string& level) {
    return R"({"format": "tutti-links-1", "nodes": [)" + nodes + R"(], "levels": [{"level": ")" + level +
           R"(", "ranks": [0, 1], "operations": [{"operation": "all_reduce", "startup_s": 1e-4, "per_byte_s": 1e-9, "residual": 0, "samples": []}]}]})";
  };
  write("two.json", links(R"({"ranks": [0]}, {"ranks": [1]})", "nodes"));
  write("one.json", links(R"({"ranks": [0, 1]})", "node"));
  CommandResult result = tool("plan some --cluster two.json --gpus 2,4 --brief");
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("4 machines with links like those of the 2 ranks that were measured\n"));
  EXPECT_THAT(result.output, HasSubstr("\n4 ranks\n"));
  result = tool("plan some --cluster one.json --gpus 4 --brief");
  EXPECT_THAT(result.output, HasSubstr("4 ranks in one machine like the one where 2 were measured\n"));
  EXPECT_THAT(tool("plan some --cluster two.json --gpus 2 --brief").output, Not(HasSubstr("like")));
}

TEST_F(PlanCommand, RefusesWhatItCannotPlanBeforeTheFirstTable) {
  const std::string good = "--model resnet18 --cluster mine.yaml ";
  expect_refusal("", "what to plan?");
  expect_refusal("--model resnet18", "--model needs --cluster");
  expect_refusal("--cluster mine.yaml", "--cluster needs --model");
  expect_refusal("--model resnet19 --cluster mine.yaml", "did you mean 'resnet18'?");
  expect_refusal("--model resnet18 --cluster 10gbee", "did you mean '10gbe'?");
  expect_refusal("--model resnet18 --cluster missing.yaml", "A file of your own is named with its path");
  expect_refusal(good + "--gpus 2,5", "cluster 'mine' has 4 devices, and 5 are asked for");
  expect_refusal(good + "--gpus 0,2", "--gpus 0: at least one is needed");
  expect_refusal(good + "--gpus -2", "--gpus -2");
  expect_refusal(good + "--gpus two", "--gpus");
  expect_refusal(good + "--batch 0", "--batch 0");
  expect_refusal(good + "--batch nan", "--batch nan");
  expect_refusal(good + "--accumulate 0", "--accumulate 0");
  expect_refusal(good + "--nodes -1", "--nodes -1");
  expect_refusal(good + "--nodes 2000000000", "--nodes 2000000000");
  expect_refusal(good + "--servers -1", "--servers");
  expect_refusal(good + "--below 80", "0.8 for 80 %");
  expect_refusal(good + "--optimizer sdg", "did you mean 'sgd'?");
}

TEST_F(PlanCommand, NamesTheLineOfADamagedClusterFile) {
  const std::string text = kCluster;
  write("empty.yaml", "");
  write("cut.yaml", text.substr(0, text.find(", memory_gb_per_s")));
  write("half.yaml", text.substr(0, text.find("network:")));
  write("odd.yaml", text + "colour: red\n");
  write("bytes.yaml", std::string("\x7f"
                                  "ELF\x02\x01\x00\x00\xff\xfe",
                                  10));
  write("links.json", R"({"format": "tutti-links-1", "nodes": [)");
  const std::string model = "--model resnet18 --cluster ";
  expect_refusal(model + "empty.yaml", "empty.yaml: a cluster file has lines like");
  expect_refusal(model + "cut.yaml", "cut.yaml:4: not YAML");
  expect_refusal(model + "half.yaml", "half.yaml: several nodes need network");
  expect_refusal(model + "odd.yaml", "odd.yaml:7: unknown key 'colour'");
  expect_refusal(model + "bytes.yaml", "bytes.yaml");
  expect_refusal(model + "links.json", "links.json: not a links file of `tutti probe`");
}

}  // namespace
}  // namespace tutti
