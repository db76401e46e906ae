// Whole sweeps with a stand-in for `tutti train` (bench_tool.cpp): what they record, and what interrupts them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <thread>

#include "base/clock.h"
#include "base/files.h"
#include "support/command.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kTool = TUTTI_BENCH_TOOL;

class Bench : public ::testing::Test {
 protected:
  Bench() : root_(::testing::TempDir() + "bench_" + std::to_string(::getpid())), folder_(root_ / "sweep") {
    remove_tree(root_);
    fs::create_directories(root_);
  }
  ~Bench() override { remove_tree(root_); }

  /// Writes a sweep of 2 strategies × 2 numbers of ranks and a baseline.
  std::string sweep(const std::string& more) const {
    const fs::path file = root_ / "my.yaml";
    std::ofstream(file)
        << "title: mine\naxes: {strategy: [bsp, dear], ranks: [2, 4]}\nbaseline: {ranks: 1}\nwarmup-steps: 0\n"
        << more;
    return file.string();
  }
  static CommandResult bench(const std::string& arguments) { return run_command(kTool + " bench " + arguments); }
  CommandResult begin(const std::string& file) const { return bench(file + " -o " + folder_.string()); }
  CommandResult resume() const { return bench("--resume " + folder_.string()); }

  /// Starts it and does not wait.
  pid_t start(const std::vector<std::string>& words) const {
    const pid_t child = ::fork();
    if (child != 0) return child;
    if (std::freopen((root_ / "output").c_str(), "a", stdout) == nullptr) ::_exit(1);
    ::dup2(1, 2);
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    ::execv(arguments[0], arguments.data());
    ::_exit(127);
  }
  static int wait_for(pid_t child) {
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  static bool wait_until(const std::function<bool()>& condition) {
    for (const auto start = Clock::now(); seconds_since(start) < 60;) {
      if (condition()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return condition();
  }

  /// Also when nobody has waited for it yet.
  static bool is_gone(int pid) {
    std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
    std::string text;
    return !std::getline(stat, text) || text.find(") Z") != std::string::npos;
  }

  std::vector<json> records() const {
    std::vector<json> all;
    if (!fs::exists(folder_ / "cells.jsonl")) return all;
    std::istringstream lines(read_file(folder_ / "cells.jsonl"));
    for (std::string line; std::getline(lines, line);) all.push_back(json::parse(line));
    return all;
  }
  /// How often each cell is recorded as done.
  std::map<std::string, int> done() const {
    std::map<std::string, int> times;
    for (const json& record : records())
      if (record.at("status") == "done") ++times[record.at("cell").get<std::string>()];
    return times;
  }

  fs::path root_;
  fs::path folder_;
};

TEST_F(Bench, MeasuresEveryCellAndItsBaseline) {
  const CommandResult result = begin(sweep("repeats: 2\n"));
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, AllOf(HasSubstr("[10/10] ranks1.2: "), HasSubstr("10 of 10 cells done"),
                                   HasSubstr("tutti report " + folder_.string())));
  const std::vector<json> all = records();
  ASSERT_EQ(all.size(), 10U);
  EXPECT_EQ(all[0].at("cell"), "ranks1.1");
  EXPECT_EQ(all[0].at("baseline"), true);
  EXPECT_EQ(all[1].at("config").at("strategy"), "bsp");
  EXPECT_EQ(all[1].at("step_s").size(), 3U);
  EXPECT_THAT(all[1].at("command").get<std::string>(), HasSubstr("bench_tool train --strategy=bsp --runs="));
  const json plan = json::parse(read_file(folder_ / "sweep.json"));
  EXPECT_EQ(plan.at("name"), "my");
  EXPECT_EQ(plan.at("title"), "mine");
  EXPECT_EQ(plan.at("cells").size(), 10U);
  EXPECT_THAT(plan.at("command").get<std::string>(), HasSubstr("bench "));
  EXPECT_THAT(plan.at("file").get<std::string>(), HasSubstr("title: mine"));
}

TEST_F(Bench, ShowsWhatItWouldRunAndRunsNothing) {
  const CommandResult result = bench(sweep("") + " --dry-run --only strategy=dear,ranks=4 -o " + folder_.string());
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, AllOf(HasSubstr("ranks1.1 (baseline)\n"), HasSubstr("dear-ranks4.1\n"),
                                   HasSubstr("2 cells\n"), Not(HasSubstr("bsp"))));
  EXPECT_FALSE(fs::exists(folder_));
}

TEST_F(Bench, NeverCountsAFailedCellAsFinishedAndTriesItAgain) {
  const std::string file = sweep("where:\n  - {when: {strategy: dear, ranks: 2}, set: {manner: fails-once}}\n");
  const CommandResult first = begin(file);
  EXPECT_EQ(first.exit_code, 1);
  EXPECT_THAT(first.output, AllOf(HasSubstr("[3/5] dear-ranks2.1: FAILED"), HasSubstr("4 of 5 cells done"),
                                  HasSubstr("failed: dear-ranks2.1: rank 0/2, step 1: no luck this time (exit code 1)"),
                                  HasSubstr("tutti bench --resume " + folder_.string())));
  EXPECT_EQ(done().count("dear-ranks2.1"), 0U);
  const CommandResult second = resume();
  EXPECT_EQ(second.exit_code, 0) << second.output;
  EXPECT_EQ(records().size(), 6U);
  EXPECT_EQ(done().at("dear-ranks2.1"), 1);
  const CommandResult third = resume();
  EXPECT_EQ(third.exit_code, 0);
  EXPECT_EQ(records().size(), 6U);
}

TEST_F(Bench, RecordsDeathsHangsAndMissingResultsAsFailures) {
  const CommandResult result =
      begin(sweep("timeout-minutes: 0.1\nwhere:\n"
                  "  - {when: {strategy: bsp, ranks: 2}, set: {manner: dies}}\n"
                  "  - {when: {strategy: dear, ranks: 2}, set: {manner: hangs}}\n"
                  "  - {when: {strategy: bsp, ranks: 4}, set: {manner: forgets}}\n"));
  EXPECT_EQ(result.exit_code, 1);
  std::map<std::string, std::string> errors;
  for (const json& record : records()) errors[record.at("cell")] = record.value("error", "");
  EXPECT_EQ(errors.at("bsp-ranks2.1"), "exit code 137");
  EXPECT_THAT(errors.at("dear-ranks2.1"), HasSubstr("not over after 0.1 minutes"));
  EXPECT_EQ(errors.at("bsp-ranks4.1"), "it ended without a summary");
  EXPECT_EQ(errors.at("dear-ranks4.1"), "");
  EXPECT_EQ(done().size(), 2U);
}

TEST_F(Bench, StopsItsCellOnSignalsAndGoesOnLater) {
  const std::string file = sweep("where:\n  - {when: {strategy: bsp, ranks: 4}, set: {step-ms: 100000}}\n");
  for (const int signal : {SIGINT, SIGTERM}) {
    const pid_t child = signal == SIGINT ? start({kTool, "bench", file, "-o", folder_.string()})
                                         : start({kTool, "bench", "--resume", folder_.string()});
    const fs::path pid_file = folder_ / "cells" / "bsp-ranks4.1" / "pid";
    std::string pid;
    ASSERT_TRUE(wait_until([&] { return fs::exists(pid_file) && !(pid = read_file(pid_file)).empty(); }));
    ::kill(child, signal);
    EXPECT_EQ(wait_for(child), 128 + signal);
    EXPECT_EQ(::kill(std::stoi(pid), 0), -1) << "the cell still runs";
    EXPECT_THAT(read_file(root_ / "output"),
                HasSubstr("Stopped: 3 of 5 cells are done. To go on: tutti bench --resume"));
    EXPECT_EQ(done().size(), 3U);
    fs::remove(pid_file);
  }
}

TEST_F(Bench, LeavesNoCellBehindWhenItIsKilled) {
  const pid_t child = start({kTool, "bench", sweep("options: {step-ms: 100000}\n"), "-o", folder_.string()});
  const fs::path pid_file = folder_ / "cells" / "ranks1.1" / "pid";
  ASSERT_TRUE(wait_until([&] { return fs::exists(pid_file); }));
  const int cell = std::stoi(read_file(pid_file));
  EXPECT_EQ(::kill(cell, 0), 0);
  ::kill(child, SIGKILL);
  wait_for(child);
  EXPECT_TRUE(wait_until([&] { return is_gone(cell); }));
}

TEST_F(Bench, EndsWithTheSameCellsHoweverOftenItIsKilled) {
  const std::string file = sweep("repeats: 12\noptions: {steps: 10, step-ms: 5}\n");
  std::mt19937 random(20);
  int kills = 0;
  for (int attempt = 0; kills < 20 && attempt < 200; ++attempt) {
    const bool is_first = !fs::exists(folder_ / "sweep.json");
    const pid_t child = is_first ? start({kTool, "bench", file, "-o", folder_.string()})
                                 : start({kTool, "bench", "--resume", folder_.string()});
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 120000));
    ::kill(child, SIGKILL);
    if (wait_for(child) == 128 + SIGKILL) ++kills;
    for (const auto& [cell, times] : done()) EXPECT_EQ(times, 1) << cell;
  }
  EXPECT_EQ(kills, 20);
  const std::size_t before = done().size();
  EXPECT_LT(before, 60U) << "nothing was left to resume";
  const CommandResult last = resume();
  EXPECT_EQ(last.exit_code, 0) << last.output;
  const json plan = json::parse(read_file(folder_ / "sweep.json"));
  const std::map<std::string, int> times = done();
  EXPECT_EQ(plan.at("cells").size(), 60U);
  EXPECT_EQ(times.size(), 60U);
  for (const json& cell : plan.at("cells")) {
    const auto found = times.find(cell.at("id").get<std::string>());
    ASSERT_NE(found, times.end()) << cell.at("id");
    EXPECT_EQ(found->second, 1) << cell.at("id");
  }
  EXPECT_EQ(records().size(), 60U);
}

TEST_F(Bench, LetsOneProcessWorkInAFolder) {
  const pid_t child = start({kTool, "bench", sweep("options: {step-ms: 100000}\n"), "-o", folder_.string()});
  ASSERT_TRUE(wait_until([&] { return fs::exists(folder_ / "cells" / "ranks1.1" / "pid"); }));
  const CommandResult second = resume();
  EXPECT_EQ(second.exit_code, 1);
  EXPECT_THAT(second.output, HasSubstr("another `tutti bench` is at work in " + folder_.string()));
  ::kill(child, SIGTERM);
  EXPECT_EQ(wait_for(child), 128 + SIGTERM);
}

TEST_F(Bench, SaysWhatIsWrongWithACommand) {
  const auto complains = [](const std::string& arguments, const std::string& text) {
    const CommandResult result = bench(arguments);
    EXPECT_EQ(result.exit_code, 2) << arguments << ": " << result.output;
    EXPECT_THAT(result.output, HasSubstr(text)) << arguments;
  };
  complains("", "which sweep?");
  complains("no-such-sweep", "unknown sweep 'no-such-sweep'");
  complains(sweep("") + " --repeats 0", "--repeats is 0");
  complains("--resume " + root_.string(), "there is no sweep.json in it");
  complains("--resume " + root_.string() + " --repeats 3", "--repeats belongs to the beginning of a sweep");
  complains(sweep("") + " --quick", "has no section 'quick'");
}

/// A small disk of our own.
class SmallDisk {
 public:
  SmallDisk(fs::path path, int kilobytes) : path_(std::move(path)) {
    fs::create_directories(path_);
    is_there_ = ::mount("tmpfs", path_.c_str(), "tmpfs", 0, ("size=" + std::to_string(kilobytes) + "k").c_str()) == 0;
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  ~SmallDisk() {
    if (is_there_) ::umount2(path_.c_str(), MNT_DETACH);
  }
  bool is_there() const { return is_there_; }

 private:
  fs::path path_;
  bool is_there_ = false;
};

TEST_F(Bench, StopsAtAFullDiskWithAValidRecordFileAndGoesOnWhenThereIsRoom) {
  const SmallDisk disk(root_ / "disk", 512);
  if (!disk.is_there()) GTEST_SKIP() << "needs root and the right to mount a small disk";
  folder_ = root_ / "disk" / "sweep";
  const CommandResult full = begin(sweep("repeats: 2\noptions: {filler: 100000}\n"));
  EXPECT_EQ(full.exit_code, 1) << full.output;
  EXPECT_THAT(full.output,
              AllOf(HasSubstr("tutti: the disk is full"), HasSubstr("tutti bench --resume " + folder_.string())));
  const std::size_t safe = records().size();  // every line is whole
  EXPECT_GT(safe, 0U);
  EXPECT_LT(safe, 10U);
  for (const json& record : records()) EXPECT_EQ(record.at("status"), "done");
  ASSERT_EQ(run_command("mount -o remount,size=4m " + (root_ / "disk").string()).exit_code, 0);
  const CommandResult rest = resume();
  EXPECT_EQ(rest.exit_code, 0) << rest.output;
  EXPECT_EQ(done().size(), 10U);
  EXPECT_EQ(records().size(), 10U);
}

TEST_F(Bench, StopsWhenEvenTheRecordHasNoRoom) {
  const SmallDisk disk(root_ / "disk", 256);
  if (!disk.is_there()) GTEST_SKIP() << "needs root and the right to mount a small disk";
  folder_ = root_ / "disk" / "sweep";
  // The cells write next to nothing; what fills the disk are their records, with many steps.
  const CommandResult full = begin(sweep("repeats: 2\noptions: {steps: 3000, step-ms: 0}\n"));
  EXPECT_EQ(full.exit_code, 1) << full.output;
  EXPECT_THAT(full.output, HasSubstr("tutti: the disk is full"));
  const std::string text = read_file(folder_ / "cells.jsonl");
  EXPECT_TRUE(text.empty() || text.back() == '\n');
  for (const json& record : records()) EXPECT_EQ(record.at("status"), "done");
}

/// Changes the description of the sweep that lies there.
void change_sweep(const fs::path& folder, const std::function<void(json& plan)>& change) {
  json plan = json::parse(read_file(folder / "sweep.json"));
  change(plan);
  write_file_atomically(folder / "sweep.json", plan.dump());
}

TEST_F(Bench, DeletesNothingThatIsNotItsOwn) {
  EXPECT_EQ(begin(sweep("")).exit_code, 0);
  fs::create_directories(root_ / "victim");
  std::ofstream(root_ / "victim/precious") << "x";
  fs::remove(folder_ / "cells.jsonl");
  for (const std::string& id : {std::string("../../victim"), std::string(), std::string("."), std::string(".."),
                                (root_ / "victim").string(), std::string("a/../../../victim"), std::string("a\nb")}) {
    change_sweep(folder_, [&](json& plan) { plan["cells"][0]["id"] = id; });
    const CommandResult result = resume();
    EXPECT_EQ(result.exit_code, 1) << id;
    EXPECT_THAT(result.output, AllOf(HasSubstr("sweep.json"), HasSubstr("cannot name its folder"))) << id;
    EXPECT_TRUE(fs::exists(root_ / "victim/precious")) << id;
    EXPECT_FALSE(fs::is_empty(folder_ / "cells")) << id;
  }
}

TEST_F(Bench, DoesNotPassOnOptionsThatASweepCannotHave) {
  EXPECT_EQ(begin(sweep("")).exit_code, 0);
  fs::remove(folder_ / "cells.jsonl");
  for (const char* option : {"hosts", "trace", "runs", "summary", "name", "runs=/tmp/x --batch", ""}) {
    change_sweep(folder_, [&](json& plan) { plan["cells"][0]["options"] = {{option, "-oProxyCommand=x"}}; });
    const CommandResult result = resume();
    EXPECT_EQ(result.exit_code, 1) << option;
    EXPECT_THAT(result.output, HasSubstr("which a sweep cannot have")) << option;
  }
}

TEST_F(Bench, RefusesHostsThatAreOptions) {
  const CommandResult result = bench(sweep("") + " --dry-run --hosts=-oProxyCommand=x:2,b:2");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.output, HasSubstr("'-oProxyCommand=x:2' does not read like HOST"));
}

TEST_F(Bench, FoldersAreTheUsersOwnAlsoUnderALaxUmask) {
  EXPECT_EQ(run_command("umask 000 && " + kTool + " bench " + sweep("") + " -o " + folder_.string()).exit_code, 0);
  const auto others = fs::perms::group_all | fs::perms::others_all;
  EXPECT_EQ(fs::status(folder_).permissions() & others, fs::perms::none);
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_))
    EXPECT_EQ(entry.status().permissions() & others, fs::perms::none) << entry.path();
}

}  // namespace
}  // namespace tutti
