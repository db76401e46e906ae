#include "watch/watch.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/proc_files.h"
#include "comm/nodes.h"
#include "tutti/error.h"
#include "watch/sample_run.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class WatchedRuns : public testing::Test {
 protected:
  WatchedRuns() : runs_("tutti-watch-test") {}

  Watch watch(const std::vector<std::string>& names = {}) const {
    return Watch({names, runs_.folder(), std::chrono::milliseconds(0), std::chrono::milliseconds(0)});
  }
  static json show(Watch& watch, const std::string& key, const std::string& have = "") {
    const json state = watch.state({{key, parse_held_rows(have)}});
    return state.at("runs").empty() ? json() : state.at("runs").at(0);
  }
  static std::vector<std::string> suggested(Watch& watch) {
    std::vector<std::string> keys;
    const json state = watch.state({});
    for (const json& known : state.at("known"))
      if (known.at("suggested") == true) keys.push_back(known.at("key"));
    return keys;
  }
  /// This process, as a rank that trains the run.
  void be_rank(const std::string& run, int rank, double updated, double cpu_s, int awaited = -1) const {
    RankStatus status;
    status.run = (runs_.folder() / run).string();
    status.rank = rank;
    status.ranks = 2;
    status.host = this_host();
    status.pid = ::getpid();
    status.process_start = process_stat(::getpid())->start_time;
    status.phase = "training";
    status.step = 30;
    status.steps = 60;
    status.updated = updated;
    status.cpu_s = cpu_s;
    if (awaited >= 0) {
      status.awaited.call = "all_reduce";
      status.awaited.ranks = {awaited};
    }
    const fs::path folder = status_folder(runs_.folder(), "job");
    make_folders(folder);
    write_file_atomically(status_file(folder, rank), json(status).dump());
  }

  SampleRuns runs_;
};

TEST_F(WatchedRuns, AreToldOnceAndThenOnlyWhatIsNew) {
  runs_.begin("first");
  runs_.progress("first", 10, 2);
  Watch all = watch();
  const json begin = show(all, "first");
  EXPECT_EQ(begin.at("state"), "idle");
  EXPECT_EQ(begin.at("progress").at("step"), json({10}));
  runs_.progress("first", 20, 1);
  const json more = show(all, "first", begin.at("have"));
  EXPECT_EQ(more.at("generation"), begin.at("generation"));
  EXPECT_EQ(more.at("progress").at("from"), 1);
  EXPECT_EQ(more.at("progress").at("step"), json({20}));
  EXPECT_EQ(show(all, "first", more.at("have")).at("progress").at("step"), json::array());
  // Of another server, or made up: everything.
  Watch later = watch();
  EXPECT_EQ(show(later, "first", more.at("have")).at("progress").at("step"), json({10, 20}));
  EXPECT_EQ(show(all, "first", "x.1.1").at("progress").at("from"), 0);
}

TEST_F(WatchedRuns, ThatHaveNotBegunAppearWhenTheyDo) {
  Watch named = watch({"later"});
  EXPECT_EQ(show(named, "later").at("state"), "missing");
  runs_.begin("later");
  EXPECT_EQ(show(named, "later").at("state"), "idle");
  runs_.finish("later", 5);
  EXPECT_EQ(show(named, "later").at("state"), "finished");
}

TEST_F(WatchedRuns, AreThoseOfTheFolderWhereNoneIsNamed) {
  Watch all = watch();
  EXPECT_EQ(all.state({}).at("known"), json::array());
  runs_.begin("old");
  runs_.begin("new");
  fs::last_write_time(runs_.records("old"), fs::file_time_type::clock::now() - std::chrono::hours(1));
  EXPECT_EQ(suggested(all), std::vector<std::string>{"new"}) << "the newest";
  be_rank("old", 0, 100, 5);
  EXPECT_EQ(suggested(all), std::vector<std::string>{"old"}) << "the one that goes on";
}

TEST_F(WatchedRuns, AreNoOthersThanThoseKnown) {
  runs_.begin("first");
  runs_.begin("second");
  Watch named = watch({"first"});
  for (const char* key : {"second", "../first", "/etc", ""}) {
    EXPECT_TRUE(show(named, key).is_null()) << key;
    EXPECT_THROW(named.timeline(key), Error) << key;
  }
  Watch all = watch();
  EXPECT_TRUE(show(all, "second").is_object());
  EXPECT_TRUE(show(all, (runs_.folder() / "second").string()).is_null());
}

TEST_F(WatchedRuns, TellWhatTheirRanksDo) {
  runs_.begin("first");
  be_rank("first", 0, 100, 5, 1);
  be_rank("first", 1, 100, 7);
  Watch named = watch({"first"});
  const json told = show(named, "first");
  EXPECT_EQ(told.at("state"), "running");
  EXPECT_EQ(told.at("ranks").size(), 2u);
  EXPECT_EQ(told.at("ranks").at(0).at("waits").at("for_ranks"), json({1}));
  EXPECT_EQ(told.at("held_up_by"), json({1}));
  EXPECT_EQ(told.at("usage").at("step"), json::array()) << "nothing to compare with yet";
}

TEST_F(WatchedRuns, TellHowManyCoresTheyUse) {
  runs_.begin("first");
  const auto job = [&] { return read_job(status_folder(runs_.folder(), "job")); };
  WatchedRun run;
  be_rank("first", 0, 100, 5);
  be_rank("first", 1, 100, 7);
  SeenJob seen = job();
  run.look(runs_.records("first"), &seen, 100);
  be_rank("first", 0, 102, 6);
  be_rank("first", 1, 102, 10);
  seen = job();
  run.look(runs_.records("first"), &seen, 102);
  const json told = run.told({});
  EXPECT_EQ(told.at("ranks").at(0).at("cores"), 0.5) << "a second of a processor in two";
  EXPECT_EQ(told.at("ranks").at(1).at("cores"), 1.5);
  EXPECT_EQ(told.at("usage").at("columns").at("cores"), json({2}));
  EXPECT_EQ(told.at("usage").at("step"), json({30}));
}

TEST_F(WatchedRuns, HaveTheTimelineOfTheirTrace) {
  runs_.begin("first");
  Watch named = watch({"first"});
  EXPECT_EQ(show(named, "first").at("timeline"), "");
  EXPECT_THROW(named.timeline("first"), Error);
  write_file_atomically(runs_.folder() / "first/trace.json", R"({"traceEvents":[
    {"ph":"X","pid":0,"tid":0,"name":"step 5","cat":"step","ts":10,"dur":20,"args":{"step":5}}]})");
  EXPECT_NE(show(named, "first").at("timeline"), "");
  EXPECT_EQ(named.timeline("first").at("step"), 5);
  write_file_atomically(runs_.folder() / "first/trace.json", "[]");
  EXPECT_THROW(named.timeline("first"), Error);
}

}  // namespace
}  // namespace tutti
