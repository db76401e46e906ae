// Looking into runs while they run, hang and end: real processes, stopped and killed.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "base/files.h"
#include "base/process.h"
#include "status/status_files.h"
#include "support/command.h"
#include "support/text.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

bool comes_true(const std::function<bool()>& condition) {
  for (int i = 0; i < 3000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

/// A folder of its own for each test, and a run of three ranks in it.
class Live : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("tutti-live-test-" + std::to_string(::getpid()));
    remove_tree(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override {
    if (launcher_ > 0) {
      ::kill(launcher_, SIGKILL);
      wait_for_child(launcher_);
    }
    remove_tree(folder_);
  }

  void begin(const std::string& arguments) {
    const std::string command = fmt::format(
        "cd {} && exec {} train --ranks 3 --threads 1 --device cpu --batch 8 --train-size 240 --test-size 30 --runs {} "
        "{} > output 2>&1",
        folder_.string(), TUTTI_BINARY, runs().string(), arguments);
    ChildStart start;
    start.words = {"sh", "-c", command};
    launcher_ = start_child(start);
  }
  /// The exit code.
  int end() {
    const int code = exit_code_of(wait_for_child(launcher_));
    launcher_ = -1;
    return code;
  }

  fs::path runs() const { return folder_ / "runs"; }
  std::string output() const { return fs::exists(folder_ / "output") ? read_file(folder_ / "output") : ""; }
  std::string last_line() const {
    std::string text = output();
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return text.substr(text.rfind('\n') + 1);
  }
  CommandResult status(const std::string& arguments = "") const {
    return run_command(fmt::format("{} status --runs {} {}", TUTTI_PLAN_TOOL, runs().string(), arguments));
  }

  /// Waits until a rank is in this phase; returns its process.
  pid_t find_rank(int rank, const std::string& phase) const {
    pid_t pid = -1;
    comes_true([&] {
      for (const SeenJob& job : read_jobs(runs()))
        for (const SeenRank& seen : job.ranks)
          if (seen.status.rank == rank && seen.status.phase == phase) pid = seen.status.pid;
      return pid > 0;
    });
    // Never a number that means more than one process to kill().
    if (pid <= 1) throw std::runtime_error(fmt::format("rank {} did not come to {}:\n{}", rank, phase, output()));
    return pid;
  }

  void expect_named(const std::string& arguments, const std::string& phase, int victim) {
    begin(arguments + " --comm-timeout 3");
    const pid_t pid = find_rank(victim, phase);
    ASSERT_EQ(::kill(pid, SIGSTOP), 0);
    const auto stopped = std::chrono::steady_clock::now();
    EXPECT_EQ(end(), 75);
    const auto took = std::chrono::steady_clock::now() - stopped;
    EXPECT_LT(took, std::chrono::seconds(3 + 10 + 20)) << "the twenty are for a busy machine";
    const std::string name = fmt::format("rank {} of 3", victim);
    EXPECT_TRUE(contains(last_line(), name)) << phase << ", " << name << ":\n" << output();
    EXPECT_TRUE(contains(last_line(), "the others gave up waiting for it")) << output();
    std::istringstream lines(output());
    for (std::string line; std::getline(lines, line);) {
      if (line.rfind(fmt::format("tutti: rank {}/3", victim), 0) == 0) continue;  // woken, it tells how others ended
      for (int rank = 0; rank < 3; ++rank) {
        const std::string other = fmt::format("rank {} of 3", rank);
        if (rank == victim) continue;
        EXPECT_FALSE(contains(line, other + " has stopped") || contains(line, other + " stopped") ||
                     contains(line, "heard nothing from " + other))
            << output();
      }
    }
    EXPECT_NE(::kill(pid, 0), 0) << "it is still there";
    remove_tree(runs());
  }

  fs::path folder_;
  pid_t launcher_ = -1;
};

TEST_F(Live, ARankStoppedAtTheStartEndsTheRunAndIsNamed) { expect_named("--epochs 10000", "starting", 2); }

TEST_F(Live, ARankStoppedInAStepEndsTheRunAndIsNamed) { expect_named("--epochs 10000 --no-eval", "training", 2); }

TEST_F(Live, ARankStoppedInAnEvaluationEndsTheRunAndIsNamed) {
  expect_named("--epochs 10000 --test-size 60000", "evaluation", 1);
}

TEST_F(Live, ARankStoppedInACheckpointEndsTheRunAndIsNamed) {
  expect_named("--epochs 10000 --no-eval --checkpoint-steps 1 --name saves", "checkpoint", 0);
}

TEST_F(Live, AStoppedRankIsNamedWhereOthersWaitForServers) {
  expect_named("--epochs 10000 --no-eval --strategy wfbp-ps", "training", 1);
}

TEST_F(Live, ARankStoppedAtTheStartOfARunOverMpiEndsItAndIsNamed) {
  if (!is_in_path("mpirun")) GTEST_SKIP() << "no mpirun";
  expect_named("--epochs 10000 --transport mpi", "starting", 2);
}

TEST_F(Live, ARankStoppedInARunOverMpiEndsItAndIsNamed) {
  if (!is_in_path("mpirun")) GTEST_SKIP() << "no mpirun";
  expect_named("--epochs 10000 --transport mpi --no-eval", "training", 0);
  expect_named("--epochs 10000 --transport mpi --test-size 60000", "evaluation", 1);
}

TEST_F(Live, ARankThatIsStoppedForAWhileGoesOn) {
  begin("--steps 40 --no-eval --comm-timeout 60 --name pause");
  const pid_t pid = find_rank(1, "training");
  ::kill(pid, SIGSTOP);
  EXPECT_TRUE(comes_true([&] { return contains(output(), "is stopped (SIGSTOP)"); })) << output();
  ::kill(pid, SIGCONT);
  EXPECT_EQ(end(), 0) << output();
}

TEST_F(Live, StatusTellsWhatAHungRunWaitsFor) {
  begin("--epochs 10000 --no-eval --comm-timeout 600 --name hung");
  const pid_t pid = find_rank(1, "training");
  ::kill(pid, SIGSTOP);
  json ranks;
  EXPECT_TRUE(comes_true([&] {
    ranks = json::parse(status("hung --json").output);
    return ranks.at("ranks")[0].contains("waits") && ranks.at("ranks")[2].contains("waits") &&
           ranks.at("held_up_by") == json::array({1});
  })) << ranks;
  EXPECT_EQ(ranks.at("ranks")[1].at("condition"), "stopped");
  EXPECT_EQ(ranks.at("ranks")[0].at("waits").at("for_ranks"), json::array({1}));
  const CommandResult shown = status("hung");
  EXPECT_EQ(shown.exit_code, 0);
  EXPECT_TRUE(contains(shown.output, (runs() / "hung").string() + ": 3 ranks over shm")) << shown.output;
  EXPECT_TRUE(contains(shown.output, "s for rank 1 in all_reduce of ")) << shown.output;
  EXPECT_TRUE(contains(shown.output, "(transfer ")) << shown.output;
  EXPECT_TRUE(contains(shown.output, fmt::format("rank 1 of 3 (pid {}): stopped by a signal", pid))) << shown.output;
  EXPECT_TRUE(contains(status().output, "rank 2 of 3"));  // without a name: the newest

  // The same on stderr, of the launcher and of a rank, and the run goes on.
  ::kill(launcher_, SIGQUIT);
  EXPECT_TRUE(comes_true([&] { return contains(output(), "the others wait for: rank 1"); })) << output();
  ::kill(ranks.at("ranks")[2].at("pid"), SIGQUIT);
  EXPECT_TRUE(comes_true([&] { return contains(output(), "[rank 2] rank 2 of 3 (pid "); })) << output();
  ::kill(pid, SIGCONT);
  EXPECT_TRUE(comes_true([&] { return contains(output(), "goes on"); })) << output();
  const int64_t step = ranks.at("ranks")[0].at("step");
  EXPECT_TRUE(comes_true([&] { return json::parse(status("hung --json").output).at("ranks")[0].at("step") > step; }));

  // Killed with its launcher, it is described as it was found.
  ::kill(launcher_, SIGKILL);
  wait_for_child(launcher_);
  launcher_ = -1;
  EXPECT_TRUE(comes_true([&] { return contains(status("hung").output, "hung (over): 3 ranks"); }));
  EXPECT_TRUE(contains(status("hung").output, "rank 0 of 3 (pid ")) << status("hung").output;
  EXPECT_TRUE(contains(status("hung").output, "gone without a word")) << status("hung").output;
}

TEST_F(Live, StatusTellsHowARunEnded) {
  const CommandResult none = status();
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_TRUE(contains(none.output, "no run is going on in")) << none.output;
  begin("--steps 4 --name done");
  EXPECT_EQ(end(), 0) << output();
  EXPECT_FALSE(fs::exists(runs() / ".status")) << "a run that did its work leaves nothing behind";
  const CommandResult done = status("done");
  EXPECT_EQ(done.exit_code, 0);
  EXPECT_TRUE(contains(done.output, ": finished ")) << done.output;
  EXPECT_TRUE(contains(done.output, "4 steps on 3 ranks")) << done.output;
  EXPECT_TRUE(contains(status("dome").output, "did you mean 'done'?")) << status("dome").output;
}

TEST_F(Live, ASlowRankIsNamedOnceAndInRecordsAndExplanations) {
  ::setenv("TUTTI_SLOW_RANK", "1:60", 1);
  begin("--epochs 3 --train-size 720 --no-eval --name slow");
  ::unsetenv("TUTTI_SLOW_RANK");
  EXPECT_EQ(end(), 0) << output();
  const std::string said = "note: rank 1 is slow";
  EXPECT_TRUE(contains(output(), said)) << output();
  EXPECT_EQ(output().find(said), output().rfind(said)) << output();
  EXPECT_FALSE(contains(output(), "rank 0 is slow")) << output();
  std::ifstream records(runs() / "slow/records.jsonl");
  int epochs = 0;
  for (std::string line; std::getline(records, line);) {
    const json record = json::parse(line);
    if (record.at("record") != "epoch") continue;
    ++epochs;
    EXPECT_EQ(record.value("stragglers", json::array()), json::array({1})) << line;
    EXPECT_EQ(record.at("ranks")[1].at("own_step_s").size(), 3U);
  }
  EXPECT_EQ(epochs, 3);
  const CommandResult explained = run_command(fmt::format("{} explain --runs {} slow", TUTTI_BINARY, runs().string()));
  EXPECT_TRUE(contains(explained.output, "Straggler: rank 1. In 3 of 3 epochs")) << explained.output;
}

}  // namespace
}  // namespace tutti
