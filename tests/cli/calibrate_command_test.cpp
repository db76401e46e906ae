// `tutti calibrate` as a person runs it, on tables and runs short enough to be fitted in no time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>

#include "base/files.h"
#include "sim/written_run.h"
#include "support/command.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kHeader =
    "| DNN | BS | CONNECTION | METHOD | Baseline | 1 GPU | 4 GPUs | 8 GPUs | 16 GPUs | 32 GPUs |\n"
    "|---|---|---|---|---|---|---|---|---|---|\n";
// Of the published table (2020-05-29).
const std::string kBsp =
    "| ResNet-50 | 64 | 10GbE with TCP/IP | BSP-A2A | 253.1 | 925.020 +- 4.42 | 1282.280 +- 1.94 | 2485.120 +- 4.27 | "
    "4920.820 +- 4.43 |\n";
const std::string kServers =
    "| ResNet-50 | 64 | 100GbE with TCP/IP | WFBP-PS | 253.1 | 1014.780 +- 0.47 | 2002.060 +- 29.46 | 3811.350 +- "
    "30.02 "
    "| 6933.738 +- 41.83 |\n";

class CalibrateCommand : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("tutti-calibrate-test-" + std::to_string(::getpid()));
    fs::create_directories(folder_);
    write("table.md", kHeader + kBsp);
  }
  void TearDown() override { remove_tree(folder_); }

  void write(const std::string& name, const std::string& text) const { std::ofstream(folder_ / name) << text; }
  CommandResult calibrate(const std::string& arguments) const {
    return run_command("cd '" + folder_.string() + "' && " TUTTI_PLAN_TOOL " calibrate " + arguments);
  }
  void expect_error(const std::string& arguments, int exit_code, const std::string& text) const {
    const CommandResult result = calibrate(arguments);
    EXPECT_EQ(result.exit_code, exit_code) << arguments << "\n" << result.output;
    EXPECT_THAT(result.output, HasSubstr(text)) << arguments;
    EXPECT_THAT(result.output, Not(HasSubstr("mean error"))) << arguments;
  }

  fs::path folder_;
};

TEST_F(CalibrateCommand, ShowsParametersScoreAndEveryRow) {
  const CommandResult result = calibrate("table.md --rows");
  ASSERT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, ::testing::ContainsRegex("parameters \\([0-9]+ shared by all networks, [0-9]+ of one "
                                                      "network\\) from 4 rows"));
  EXPECT_THAT(result.output, HasSubstr("network.bytes_per_s"));
  EXPECT_THAT(result.output, HasSubstr("not identifiable"));  // four figures cannot tell all of them
  for (const char* row : {"resnet50   10gbe    BSP-A2A                 4     276.8 ms",
                          "resnet50   10gbe    BSP-A2A                32     416.2 ms"})
    EXPECT_THAT(result.output, HasSubstr(row));
  std::smatch match;
  ASSERT_TRUE(std::regex_search(result.output, match, std::regex("fitted, 4 rows: mean error ([0-9.]+) %")));
  EXPECT_LT(std::stod(match[1]), 5);
  EXPECT_THAT(result.output, HasSubstr("The strategy that the simulation prefers is within 2 % of the best measured in "
                                       "4 of 4 cases."));
}

TEST_F(CalibrateCommand, FitsFiguresAsThoseThatComeWithTheRepository) {
  write("figures.csv",
        "# Source: the table above\nmodel,batch,network,strategy,ranks,samples_per_s,deviation\n"
        "ResNet-50,64,10GbE with TCP/IP,,1,253.1,\nResNet-50,64,10GbE with TCP/IP,BSP-A2A,4,925.020,4.42\n"
        "ResNet-50,64,10GbE with TCP/IP,BSP-A2A,8,1282.280,1.94\nResNet-50,64,10GbE with "
        "TCP/IP,BSP-A2A,16,2485.120,4.27\n"
        "ResNet-50,64,10GbE with TCP/IP,BSP-A2A,32,4920.820,4.43\n");
  const CommandResult result = calibrate("figures.csv --rows");
  ASSERT_EQ(result.exit_code, 0) << result.output;
  EXPECT_EQ(result.output, calibrate("table.md --rows").output);
  write("times.csv", "model,ranks,epoch,train_s\nnet,1,1,2\n");
  expect_error("times.csv", 1, "times.csv: no table of strategies in it");
}

TEST_F(CalibrateCommand, ScoresWhatIsHeldOutAndFitsTheRest) {
  for (const char* what : {"32", "resnet50/10gbe"}) {
    write("two.md", kHeader + kBsp + (std::string(what) == "32" ? "" : kServers));
    const CommandResult result = calibrate(std::string("two.md --hold-out ") + what);
    ASSERT_EQ(result.exit_code, 0) << result.output;
    const bool is_size = std::string(what) == "32";
    EXPECT_THAT(result.output, HasSubstr(is_size ? "fitted, 3 rows:" : "fitted, 1 rows:"));
    EXPECT_THAT(result.output, HasSubstr(is_size ? "held out, 1 rows:" : "held out, 4 rows:"));
  }
}

TEST_F(CalibrateCommand, LeavesMislabelledRowsOutUnlessTold) {
  write("servers.md", kHeader + kServers);
  const CommandResult without = calibrate("servers.md");
  EXPECT_THAT(without.output, HasSubstr("3 rows are left out"));
  EXPECT_THAT(without.output, HasSubstr("fitted, 1 rows"));
  const CommandResult with = calibrate("servers.md --keep-mislabelled");
  EXPECT_THAT(with.output, Not(HasSubstr("left out")));
  EXPECT_THAT(with.output, HasSubstr("fitted, 4 rows"));
}

TEST_F(CalibrateCommand, RefusesHoldingOutNothingOrEverything) {
  expect_error("table.md --hold-out 64", 2, "--hold-out 64: nothing here has that name");
  expect_error("table.md --hold-out resnet50/100gbe", 2, "--hold-out resnet50/100gbe: nothing");
  expect_error("table.md --hold-out resnet50", 2, "--hold-out leaves no row to fit");
  expect_error("", 2, "tables");
}

TEST_F(CalibrateCommand, NamesWhatMatchesNothingAmongSeveralThingsHeldOut) {
  expect_error("table.md --hold-out 32 --hold-out bert-base --hold-out 64", 2,
               "--hold-out bert-base, --hold-out 64: nothing here has that name. What can be held out: 10gbe, 16, 32, "
               "4, 8, resnet50, resnet50/10gbe.");
}

TEST_F(CalibrateCommand, HoldsRunsOutByTheNamesTheyHave) {
  for (const char* model : {"some-net", "other-net"})
    for (const char* strategy : {"bsp", "wfbp", "dear"})
      write_run(folder_ / "runs" / model / strategy, strategy, 0.030, true, {{"model", model}, {"link_gbps", 4}});
  const CommandResult result = calibrate("runs --hold-out other-net");
  ASSERT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("\nfitted, 3 runs"));
  EXPECT_THAT(result.output, HasSubstr("\nheld out (*), 3 runs"));
  expect_error("runs --hold-out other-net --hold-out othernet", 2,
               "--hold-out othernet: nothing here has that name. What can be held out: 2, 4 Gbit/s, other-net, shm, "
               "some-net.");
}

TEST_F(CalibrateCommand, HasTheSameFactsAsJson) {
  const CommandResult published = calibrate("table.md --hold-out 32 --json");
  ASSERT_EQ(published.exit_code, 0) << published.output;
  const auto facts = nlohmann::json::parse(published.output);
  EXPECT_EQ(facts.at("fitted").at("rows"), 3);
  EXPECT_EQ(facts.at("held_out").at("rows"), 1);
  EXPECT_EQ(facts.at("rows").size(), 4U);
  EXPECT_EQ(facts.at("rows").back().at("ranks"), 32);
  EXPECT_EQ(facts.at("rows").back().at("held_out"), true);
  EXPECT_FALSE(facts.at("parameters").empty());

  for (const char* strategy : {"bsp", "wfbp", "dear"})
    write_run(folder_ / "runs" / strategy, strategy, 0.030, true, {{"model", "some-net"}, {"link_gbps", 4}});
  const CommandResult own = calibrate("runs --json");
  ASSERT_EQ(own.exit_code, 0) << own.output;
  const auto found = nlohmann::json::parse(own.output);
  EXPECT_EQ(found.at("fitted").at("rows"), 3);
  EXPECT_TRUE(found.at("held_out").is_null());
  EXPECT_EQ(found.at("rows").size(), 3U);
}

TEST_F(CalibrateCommand, NamesTheFileAndLineThatItCannotRead) {
  write("empty.md", "");
  write("text.md", "Dear reader,\n");
  write("cut.md", (kHeader + kBsp).substr(0, (kHeader + kBsp).rfind("| 4920.820")));
  write("network.md", kHeader + std::regex_replace(kBsp, std::regex("10GbE with TCP/IP"), "carrier pigeon"));
  write("method.md", kHeader + std::regex_replace(kBsp, std::regex("BSP-A2A"), "Gossip"));
  write("figure.md", kHeader + std::regex_replace(kBsp, std::regex("925.020"), "fast"));
  expect_error("missing.md", 1, "missing.md");
  expect_error("empty.md", 1, "empty.md");
  expect_error("text.md", 1, "text.md");
  expect_error("cut.md", 1, "cut.md, line 3");
  expect_error("network.md", 1, "network.md, line 3: unknown network 'carrier pigeon'");
  expect_error("method.md", 1, "Gossip");
  expect_error("figure.md", 1, "fast");
}

}  // namespace
}  // namespace tutti
