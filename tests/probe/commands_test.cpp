// `tutti check` and `tutti probe` as processes that talk to each other, through the commands that people type.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "comm/mpi/mpi.h"
#include "support/command.h"
#include "tutti/links.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string why_no_mpirun() {
  if (!built_with_mpi()) return "built without MPI";
  return run_command("mpirun --version").exit_code == 0 ? "" : "there is no mpirun";
}

class Commands : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) / ("commands_test_" + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { remove_tree(folder_); }

  CommandResult tool(const std::string& arguments) const {
    return run_command("cd " + folder_.string() + " && " TUTTI_PROBE_TOOL " " + arguments);
  }
  nlohmann::json json(const std::string& file) const { return nlohmann::json::parse(read_file(folder_ / file)); }

  fs::path folder_;
};

/// The same through MPI.
class MpiCommands : public Commands {
 protected:
  void SetUp() override {
    Commands::SetUp();
    const std::string reason = why_no_mpirun();
    if (!reason.empty()) GTEST_SKIP() << reason;
  }
};

TEST_F(Commands, CheckOfOneMachineIsFine) {
  const CommandResult result = tool("check --ranks 2 --json check.json");
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, AllOf(HasSubstr("ok: 2 ranks on 1 node answer over shm"), HasSubstr("ok: binary"),
                                   HasSubstr("ok: clocks"), Not(HasSubstr("problem:"))));
  const nlohmann::json seen = json("check.json");
  EXPECT_EQ(seen.at("ranks").size(), 2U);
  EXPECT_EQ(seen.at("pairs").size(), 2U);
  // Two ranks of one machine read the same clocks.
  EXPECT_NEAR(seen.at("clocks").at(1).at("wall_s").get<double>(), 0, 0.05);
  EXPECT_NEAR(seen.at("clocks").at(1).at("steady_s").get<double>(), 0, 0.05);
}

TEST_F(Commands, CheckOfALoneRankIsFine) {
  const CommandResult result = tool("check --ranks 1");
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("ok: 1 rank on 1 node answer"));
}

TEST_F(Commands, CheckNamesARankThatDoesNotCome) {
  const CommandResult result = run_command("TUTTI_RANK=0 TUTTI_SIZE=3 TUTTI_JOB=alone" + std::to_string(::getpid()) +
                                           " " TUTTI_PROBE_TOOL " check --timeout 0.5");
  EXPECT_EQ(result.exit_code, 1) << result.output;
  EXPECT_THAT(result.output, AllOf(HasSubstr("problem: "), HasSubstr("1"), HasSubstr("2"),
                                   AnyOf(HasSubstr("missing"), HasSubstr("come"))));
}

TEST_F(Commands, RefuseNcclWithoutItOrAGpuForEachRank) {  // the tool knows of no GPU
  for (const char* command : {"check", "probe"}) {
    const CommandResult result = tool(std::string(command) + " --ranks 2 --transport nccl");
    EXPECT_NE(result.exit_code, 0) << result.output;
    EXPECT_THAT(result.output, AnyOf(HasSubstr("--transport nccl: this build has no NCCL"),
                                     HasSubstr("--transport nccl needs a GPU for each rank")));
  }
}

TEST_F(Commands, ProbeWritesALinksFile) {
  const CommandResult result = tool("probe --ranks 3 --max-mb 0.25 --seconds 0.01");
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, AllOf(HasSubstr("inside a node: 3 ranks over shm"), HasSubstr("busbw"),
                                   HasSubstr("all figures are in links.json")));
  const nlohmann::json links = json("links.json");
  EXPECT_GT(links.get<Links>().all_reduce.seconds(1 << 20), 0);
  EXPECT_EQ(links.at("levels").at(0).at("operations").size(), 5U);
  for (const auto& op : links.at("levels").at(0).at("operations")) {
    EXPECT_EQ(op.at("points").size(), 5U);  // 1, 4, 16, 64, 256 KB
    for (const auto& point : op.at("points")) EXPECT_GE(point.at("count").get<int>(), 5);
  }
  EXPECT_EQ(links.at("pairs").size(), 6U);
}

TEST_F(Commands, ProbeDrawsOrSaysWhyNot) {
  const CommandResult result = tool("probe --ranks 2 --max-mb 0.01 --seconds 0.01 --ops send --plot plot.svg");
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, AnyOf(HasSubstr("plot: plot.svg"), HasSubstr("there is no gnuplot")));
  EXPECT_EQ(fs::exists(folder_ / "plot.svg"), result.output.find("plot: plot.svg") != std::string::npos);
}

TEST_F(Commands, WhatCannotBeMeantIsOneMessageAndExitCodeTwo) {
  const std::pair<const char*, const char*> cases[] = {
      {"probe --max-mb 0", "--max-mb is 0"},         {"probe --seconds -1", "--seconds is -1"},
      {"probe --repeats 0", "--repeats is 0"},       {"probe --ops all_reduse", "did you mean 'all_reduce'"},
      {"probe --plot a.gif", ".svg or .png"},        {"probe --plot none/a.svg", "there is no folder none"},
      {"probe --links none/a", "no folder none"},    {"probe --ranks 1", "nobody to talk to"},
      {"probe --link-gbps -1", "--link-gbps is -1"}, {"check --ranks 0", "--ranks is 0"},
      {"check --transport tcp", "auto, shm, mpi"},   {"check --timeout 0", "--timeout is 0"},
      {"check --hosts a:x", "HOST:RANKS"},           {"check --hosts a:2 --ranks 3", "contradicts --hosts"},
      {"check --hosts a --transport shm", "shm"},    {"check --link-gbps -2", "--link-gbps is -2"},
  };
  for (const auto& [arguments, expected] : cases) {
    const CommandResult result = tool(arguments);
    EXPECT_EQ(result.exit_code, 2) << arguments << ": " << result.output;
    EXPECT_THAT(result.output, HasSubstr(expected)) << arguments;
  }
}

TEST_F(MpiCommands, CheckIsFineUnderMpirunAndByItself) {
  CommandResult result = tool("check --ranks 3 --transport mpi");
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, AllOf(HasSubstr("ok: 3 ranks on 1 node answer over mpi"), HasSubstr("ok: MPI: ")));
  for (const char* command :
       {TUTTI_PROBE_TOOL " check --hosts localhost:2", "mpirun -np 2 " TUTTI_PROBE_TOOL " check"}) {
    result = run_command(command);
    EXPECT_EQ(result.exit_code, 0) << result.output;
    EXPECT_THAT(result.output, HasSubstr("ok: 2 ranks on 1 node answer over shm"));
  }
}

TEST_F(MpiCommands, CheckFindsAnotherBinary) {
  const fs::path other = folder_ / "other_tool";
  fs::copy_file(TUTTI_PROBE_TOOL, other);
  std::ofstream(other, std::ios::app) << 'x';
  const CommandResult result = run_command("mpirun -np 1 " TUTTI_PROBE_TOOL " check --transport mpi : -np 1 " +
                                           other.string() + " check --transport mpi");
  EXPECT_EQ(result.exit_code, 1) << result.output;
  EXPECT_THAT(result.output, AllOf(HasSubstr("problem: binary differs: SHA-256 "), HasSubstr("(rank 1)")));
}

TEST_F(MpiCommands, CheckGivesUpOnAProcessThatNeverStartsMpi) {
  const CommandResult result =
      run_command("mpirun -np 1 " TUTTI_PROBE_TOOL " check --transport mpi --timeout 1 : -np 1 sleep 20");
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.output, HasSubstr("MPI has not started"));
}

TEST_F(MpiCommands, CheckNamesAProcessThatDoesNotAnswer) {
  const CommandResult result = run_command("mpirun -np 2 " TUTTI_PROBE_TOOL
                                           " check --transport mpi --timeout 1 : -np 1 " TUTTI_PROBE_TOOL " stay");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.output, HasSubstr(": rank 2 did not answer within 1 s"));
}

TEST_F(MpiCommands, ProbeMeasures) {
  const CommandResult result =
      tool("probe --ranks 3 --transport mpi --max-mb 0.25 --seconds 0.01 --ops all_reduce,send");
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("inside a node: 3 ranks over mpi"));
  EXPECT_GT(json("links.json").get<Links>().all_reduce.startup_s, 0);
}

}  // namespace
}  // namespace tutti
