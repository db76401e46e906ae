// Training over MPI: on this machine, and on a cluster in a box, whose links are cut and nodes killed. Needs mpirun,
// and for the box root and iproute2; skipped without.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <future>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/clock.h"
#include "base/files.h"
#include "base/safetensors.h"
#include "launch/launcher.h"
#include "support/command.h"
#include "support/machine.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kTutti = TUTTI_BINARY;
const std::string kClusterTool = TUTTI_CLUSTER_TOOL;  // `tutti cluster` without libtorch, which takes long to load

class MpiTraining : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_program("mpirun")) GTEST_SKIP() << "needs mpirun (openmpi-bin)";
    folder_ = fs::temp_directory_path() / ("tutti-mpi-test-" + std::to_string(getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override {
    if (!folder_.empty()) remove_tree(folder_);
  }

  /// A short run; the last words of `options` decide.
  std::string train(const std::string& name, const std::string& options) const {
    return kTutti + " train --steps 12 --batch 16 --no-eval --threads 1 --device cpu --trace-steps 0 --runs " +
           folder_.string() + " --name " + name + " " + options;
  }

  nlohmann::json summary(const std::string& name) const {
    std::ifstream file(folder_ / name / "records.jsonl");
    nlohmann::json last;
    for (std::string line; std::getline(file, line);) last = nlohmann::json::parse(line);
    return last;
  }

  std::string weights(const std::string& name) const { return summary(name).value("weights_sha256", "(no summary)"); }

  fs::path folder_;
};

TEST_F(MpiTraining, EveryStrategyEndsWithTheWeightsOfSharedMemory) {
  const CommandResult reference = run_command(train("shm", "--ranks 2 --transport shm --strategy bsp"));
  ASSERT_EQ(reference.exit_code, 0) << reference.output;
  for (const char* strategy : {"bsp", "wfbp", "buckets", "mgwfbp", "bytescheduler", "dear", "zero1", "bsp-ps",
                               "wfbp-ps", "bytescheduler-ps", "wfbp-ps --servers 1"}) {
    const std::string name = "mpi-" + std::string(strategy).substr(0, 5) + std::to_string(std::string(strategy).size());
    const CommandResult result =
        run_command(train(name, std::string("--ranks 2 --transport mpi --strategy ") + strategy));
    ASSERT_EQ(result.exit_code, 0) << strategy << ":\n" << result.output;
    EXPECT_EQ(weights(name), weights("shm")) << strategy;
    EXPECT_EQ(summary(name).at("transport"), "mpi");
    EXPECT_THAT(result.output, Not(HasSubstr("\033"))) << "a line of progress, though nobody watches";
  }
}

TEST_F(MpiTraining, RanksThatDisagreeWithMpirunAreRefused) {
  const CommandResult result =
      run_command("OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe -np 2 " +
                  train("odd", "--ranks 3 --transport mpi"));
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.output, HasSubstr("--ranks 3 contradicts mpirun, which started 2 processes"));
}

TEST_F(MpiTraining, HostsThatCannotBeReadAreAUsageError) {
  for (const char* hosts : {"a:0", ":2", "a:x", "a,,b"}) {
    const CommandResult result = run_command(train("h", std::string("--hosts ") + hosts));
    EXPECT_EQ(result.exit_code, 2) << hosts;
    EXPECT_THAT(result.output, HasSubstr("does not read like HOST or HOST:RANKS")) << hosts;
  }
}

TEST_F(MpiTraining, AKilledRankEndsTheJob) {
  const auto start = Clock::now();
  auto job = std::async(std::launch::async, [&] {
    return run_command(train("dies", "--ranks 3 --transport mpi --steps 100000 --checkpoint-steps 5"));
  });
  while (!fs::exists(folder_ / "dies" / "checkpoints") && seconds_since(start) < 60)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  // The second rank by its environment, among the processes of this run.
  const CommandResult killed = run_command(
      "for p in $(pgrep -f 'name dies'); do tr '\\0' '\\n' < /proc/$p/environ 2>/dev/null | "
      "grep -q '^OMPI_COMM_WORLD_RANK=1$' && kill -9 $p && echo killed; done");
  EXPECT_THAT(killed.output, HasSubstr("killed"));
  const CommandResult result = job.get();
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.output, HasSubstr("rank 1")) << "mpirun names the rank";
}

/// Four nodes of one rank each, over links of 1 Gbit.
class BoxTraining : public MpiTraining {
 protected:
  void SetUp() override {
    MpiTraining::SetUp();
    if (IsSkipped()) return;
    if (const std::string reason = why_no_box(); !reason.empty()) GTEST_SKIP() << reason;
    cluster_ = "test" + std::to_string(getpid());
    const CommandResult up = cluster("up", "--nodes 4 --network 1gbe");
    ASSERT_EQ(up.exit_code, 0) << up.output;
  }
  void TearDown() override {
    if (!cluster_.empty()) cluster("down", "");
    MpiTraining::TearDown();
  }

  CommandResult cluster(const std::string& action, const std::string& words) const {
    return run_command(kClusterTool + " " + action + " --name " + cluster_ + " " + words);
  }
  CommandResult run_in_box(const std::string& command) const { return cluster("run", "-- " + command); }

  /// A run of four nodes in the background.
  std::future<CommandResult> start(const std::string& name, const std::string& options) const {
    return std::async(std::launch::async,
                      [=] { return run_in_box(train(name, "--hosts n0,n1,n2,n3 --checkpoint-steps 5 " + options)); });
  }
  /// True once a run that is under way has saved something.
  bool has_saved(const std::string& name) const {
    for (const auto begin = Clock::now(); seconds_since(begin) < 60;) {
      const fs::path folder = folder_ / name / "checkpoints";
      if (fs::exists(folder) && !fs::is_empty(folder)) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return false;
  }

  /// True once nothing but what keeps the node itself is left there.
  bool has_nothing_running(const std::string& node) const {
    const std::string count = "ip netns pids tutti-" + cluster_ + "-" + node +
                              " | xargs -r ps -o comm= -p | grep -c -e tutti$ -e orted -e mpirun";
    for (const auto begin = Clock::now(); seconds_since(begin) < 20;) {
      if (run_command(count).output == "0\n") return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return false;
  }

  std::string cluster_;
};

TEST_F(BoxTraining, UnequalNodesTrainTogetherAndAreReportedEach) {
  const CommandResult here = run_command(train("here", "--ranks 5 --transport shm"));
  ASSERT_EQ(here.exit_code, 0) << here.output;
  const CommandResult box = run_in_box(train("box", "--hosts n0:3,n1:2 --verbose"));
  ASSERT_EQ(box.exit_code, 0) << box.output;
  EXPECT_EQ(weights("box"), weights("here"));
  EXPECT_THAT(box.output, HasSubstr("Nodes: n0 (3), n1 (2)"));
  EXPECT_THAT(box.output, HasSubstr("node n1: 2 ranks"));
  EXPECT_EQ(summary("box").at("nodes").dump(), R"([{"host":"n0","ranks":[0,1,2]},{"host":"n1","ranks":[3,4]}])");
}

TEST_F(BoxTraining, SumsInsideNodesFirstAreTheSameUnderEveryStrategy) {
  for (const char* strategy : {"bsp", "bytescheduler", "zero1"}) {
    const CommandResult result =
        run_in_box(train(strategy, std::string("--hosts n0:3,n1:2 --by-node --strategy ") + strategy));
    ASSERT_EQ(result.exit_code, 0) << result.output;
    EXPECT_EQ(summary(strategy).at("transport"), "mpi by node");
    EXPECT_EQ(weights(strategy), weights("bsp")) << strategy;
  }
  const CommandResult plan = run_command(kTutti + " plan " + (folder_ / "zero1").string());
  EXPECT_THAT(plan.output, HasSubstr("inside 2 nodes of 3, 2 ranks first"));
}

TEST_F(BoxTraining, SumsByNodeHaveTheBitsOfFlatOnesWhereLaterNodesHaveOneRank) {
  // ((0 + 1) + 2) + 3 either way: one rank alone has nothing to add up inside its node.
  for (const char* hosts : {"n0,n1,n2", "n0:2,n1,n2"}) {
    const std::string at = std::string("--hosts ") + hosts;
    const std::string name = "of" + std::to_string(at.size());
    const CommandResult flat = run_in_box(train(name, at));
    ASSERT_EQ(flat.exit_code, 0) << flat.output;
    const CommandResult by_node = run_in_box(train(name + "-by-node", at + " --by-node"));
    ASSERT_EQ(by_node.exit_code, 0) << by_node.output;
    EXPECT_EQ(weights(name + "-by-node"), weights(name)) << hosts;
  }
}

TEST_F(BoxTraining, SumsByNodeAgreeWithFlatOnesWithinRounding) {
  // (0 + 1) + (2 + 3) beside ((0 + 1) + 2) + 3.
  ASSERT_EQ(run_in_box(train("flat", "--hosts n0:2,n1:2")).exit_code, 0);
  ASSERT_EQ(run_in_box(train("by-node", "--hosts n0:2,n1:2 --by-node")).exit_code, 0);
  EXPECT_NE(weights("by-node"), weights("flat")) << "added up in the same order: the promise could be stronger";
  const SafetensorsFile flat(folder_ / "flat" / "model.safetensors");
  const SafetensorsFile by_node(folder_ / "by-node" / "model.safetensors");
  ASSERT_GT(flat.arrays().size(), 4u);
  for (const NamedArray& expected : flat.arrays()) {
    const NamedArray* const actual = by_node.find(expected.name);
    ASSERT_NE(actual, nullptr) << expected.name;
    ASSERT_EQ(actual->bytes, expected.bytes) << expected.name;
    if (expected.dtype != "F32") continue;
    const auto* const a = static_cast<const float*>(expected.data);
    const auto* const b = static_cast<const float*>(actual->data);
    double difference = 0, size = 0;
    for (std::size_t i = 0; i < expected.bytes / sizeof(float); ++i) {
      difference += (a[i] - b[i]) * (a[i] - b[i]);
      size += a[i] * a[i];
    }
    EXPECT_LE(std::sqrt(difference), 1e-5 * std::sqrt(size)) << expected.name;
  }
}

TEST_F(BoxTraining, ALinkCutForGoodEndsTheCommandAndNamesTheMissingRankAndTheTransfer) {
  auto job = start("cut", "--steps 100000 --comm-timeout 4");
  ASSERT_TRUE(has_saved("cut"));
  ASSERT_EQ(cluster("cut", "n2").exit_code, 0);
  // mpirun would wait for the node until it is there again.
  const bool ends = job.wait_for(std::chrono::seconds(60)) == std::future_status::ready;
  EXPECT_TRUE(ends);
  if (!ends) cluster("heal", "n2");
  const CommandResult result = job.get();
  EXPECT_EQ(result.exit_code, kExitPeerFailed) << result.output;
  EXPECT_THAT(result.output, HasSubstr("has heard nothing from rank 2 of 4"));
  EXPECT_THAT(result.output, AnyOf(HasSubstr(": all_reduce of transfer"), HasSubstr("after step")));
  EXPECT_THAT(result.output, Not(HasSubstr("ended with")));
  for (const char* const node : {"n0", "n1", "n3"}) EXPECT_TRUE(has_nothing_running(node)) << node;
}

TEST_F(BoxTraining, ALinkThatComesBackInTimeLetsTrainingGoOn) {
  auto job = start("heal", "--steps 60 --comm-timeout 60");
  ASSERT_TRUE(has_saved("heal"));
  ASSERT_EQ(cluster("cut", "n1").exit_code, 0);
  std::this_thread::sleep_for(std::chrono::seconds(2));
  ASSERT_EQ(cluster("heal", "n1").exit_code, 0);
  const CommandResult result = job.get();
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_EQ(summary("heal").at("steps"), 60);
}

TEST_F(BoxTraining, AKilledNodeIsFollowedByARestartFromTheLastCheckpoint) {
  auto job = start("kill", "--steps 100 --max-restarts 2");
  ASSERT_TRUE(has_saved("kill"));
  ASSERT_EQ(cluster("kill", "n3").exit_code, 0);
  const CommandResult result = job.get();
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("restart 1 of 2, from the last checkpoint"));
  EXPECT_THAT(result.output, HasSubstr("Resumed at step"));
  EXPECT_EQ(summary("kill").at("steps"), 100);
}

/// Ways to be told to stop: what is signalled, and how the ranks were started.
struct Stop {
  const char* kill;
  const char* ranks;
};

class StopSignal : public MpiTraining, public testing::WithParamInterface<Stop> {};

TEST_P(StopSignal, SavesACheckpointAndTheRunGoesOnFromIt) {
  const std::string command =
      "setsid " +  // a process group of its own
      train("stop", std::string(GetParam().ranks) +
                        " --steps 100000 --checkpoint-steps 50000 --auto-resume --log-every 10 --verbose") +
      " > log 2>&1 & pid=$!; until grep -qs 'step [0-9]*0/' log; do sleep 0.05; done; env kill " + GetParam().kill +
      "$pid; wait $pid; code=$?; cat log; exit $code";
  for (const bool is_second : {false, true}) {
    const fs::path script = folder_ / "stop.sh";
    std::ofstream(script) << "cd " << folder_.string() << "\nrm -f log\n" << command << "\n";
    const CommandResult stopped = run_command("timeout 100 sh " + script.string());
    EXPECT_EQ(stopped.exit_code, 85) << stopped.output;
    EXPECT_THAT(stopped.output, HasSubstr("Stopped by a signal after saving step"));
    EXPECT_EQ(stopped.output.find("Resumed at step") != std::string::npos, is_second) << stopped.output;
  }
}

INSTANTIATE_TEST_SUITE_P(Each, StopSignal,
                         testing::Values(Stop{"-USR1 -- ", "--ranks 2"}, Stop{"-TERM -- ", "--ranks 2"},
                                         Stop{"-USR1 -- ", "--ranks 2 --transport mpi"},
                                         Stop{"-TERM -- ", "--ranks 2 --transport mpi"},
                                         Stop{"-TERM -- -", "--ranks 2 --transport mpi"}));

TEST_F(BoxTraining, TermSavesOnAllNodesAndEndsWithTheCodeForThat) {
  auto job = start("term", "--steps 100000");
  ASSERT_TRUE(has_saved("term"));
  // The command itself, not the ranks, which mpirun has started and which have its variables.
  const CommandResult told = run_command(
      "for p in $(pgrep -f 'name term'); do tr '\\0' '\\n' < /proc/$p/environ 2>/dev/null | grep -q "
      "'^OMPI_COMM_WORLD_RANK=' || { grep -q 'train' /proc/$p/cmdline && [ \"$(cat /proc/$p/comm)\" = tutti ] && "
      "kill -TERM $p && echo told; }; done");
  EXPECT_THAT(told.output, HasSubstr("told"));
  const CommandResult result = job.get();
  EXPECT_EQ(result.exit_code, 85) << result.output;
  EXPECT_THAT(result.output, HasSubstr("Stopped by a signal after saving step"));
}

}  // namespace
}  // namespace tutti
