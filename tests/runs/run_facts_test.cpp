#include "runs/run_facts.h"

#include <gmock/gmock.h>

#include <fstream>

#include "base/folder_lock.h"
#include "runs/find_runs.h"
#include "runs/run_details.h"
#include "runs/run_folder.h"
#include "runs/run_list.h"
#include "tutti/error.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class RunFactsOf : public RunFolders {};

SummaryRecord summary_of(int64_t steps) {
  SummaryRecord summary;
  summary.steps = steps;
  summary.samples_per_s = 250;
  summary.is_tested = true;
  summary.test = {100, 0.5, {{"accuracy", 0.978}}};
  summary.weights_sha256 = "abc";
  return summary;
}

TEST_F(RunFactsOf, AFinishedRunAreItsSummary) {
  RecordFile file = records_of("a");
  file.add(beginning(options_of(16), 2), 1000);
  file.add(progress(10, 0.25), 1002);
  file.add(summary_of(12), 1003);
  const RunFacts run = facts("a");
  EXPECT_EQ(run.name, "a");
  EXPECT_EQ(run.state, RunState::finished);
  EXPECT_EQ(run.step, 12);
  EXPECT_EQ(run.loss(), 0.25);
  EXPECT_EQ(run.samples_per_s, 250);
  EXPECT_EQ(headline(run.test), "97.8 %");
  EXPECT_EQ(run.began_s, 1000);
  ASSERT_EQ(run.progress.size(), 1U);
  EXPECT_EQ(run.progress[0].samples, 10 * 16 * 2);
  EXPECT_EQ(run.progress[0].seconds, 2);
}

TEST_F(RunFactsOf, ARunThatEndedEarlySayHow) {
  for (const bool is_failed : {true, false}) {
    RecordFile file = records_of(is_failed ? "failed" : "stopped");
    file.add(beginning(options_of(16), 1), 1000);
    file.add(EndRecord{is_failed, 7, "no more disk"}, 1001);
  }
  records_of("killed").add(beginning(options_of(16), 1), 1000);
  EXPECT_EQ(facts("failed").state, RunState::failed);
  EXPECT_EQ(facts("failed").problem, "no more disk");
  EXPECT_EQ(facts("failed").step, 7);
  EXPECT_EQ(facts("stopped").state, RunState::stopped);
  EXPECT_EQ(facts("stopped").problem, "");
  EXPECT_EQ(facts("killed").state, RunState::interrupted);
}

TEST_F(RunFactsOf, AFolderThatIsLockedAreThoseOfARunningOne) {
  records_of("a").add(beginning(options_of(16), 1), 1000);
  const FolderLock lock(folder_ / "a");
  const RunFacts run = facts("a");
  EXPECT_EQ(run.state, RunState::running);
  EXPECT_THAT(run.holder, HasSubstr(fmt::format("process {} on ", ::getpid())));
}

TEST_F(RunFactsOf, AResumedRunAreThePartsThatLeadToItsEnd) {
  RecordFile file = records_of("a");
  file.add(beginning(options_of(16), 1), 1000);
  file.add(progress(10, 0.9), 1010);
  file.add(CheckpointRecord{10, "elsewhere/checkpoints/step-0000000010", 1}, 1011);
  file.add(progress(20, 0.8), 1020);  // is lost
  file.add(EndRecord{true, 20, "killed by a fault"}, 1020);
  file.add(beginning(options_of(16), 2, 10), 2000);  // with twice the samples per step
  file.add(progress(20, 0.7), 2005);
  const RunFacts run = facts("a");
  EXPECT_EQ(run.parts, 2);
  EXPECT_EQ(run.state, RunState::interrupted);
  EXPECT_EQ(run.problem, "");
  ASSERT_EQ(run.progress.size(), 2U);
  EXPECT_EQ(run.progress[0].loss, 0.9);
  EXPECT_EQ(run.progress[1].loss, 0.7);
  EXPECT_EQ(run.progress[1].samples, 10 * 16 + 10 * 32);
  EXPECT_EQ(run.progress[1].seconds, 20 + 5);
}

TEST_F(RunFactsOf, AFinishedRunStayWhenItIsResumedInVain) {
  RecordFile file = records_of("a");
  file.add(beginning(options_of(16), 1), 1000);
  file.add(summary_of(12), 1003);
  file.add(EndRecord{true, 0, "no such data"}, 1100);
  EXPECT_EQ(facts("a").state, RunState::finished);
}

TEST_F(RunFactsOf, DamagedRecordsSayWhere) {
  records_of("a").add(beginning(options_of(16), 1), 1000);
  std::ofstream(folder_ / "a" / kRecordsFile, std::ios::app) << "no record\n{}\n";
  const RunFacts run = facts("a");
  EXPECT_EQ(run.state, RunState::unreadable);
  EXPECT_THAT(run.problem, HasSubstr("line 2"));
  EXPECT_THAT(run_list({run}, 0), HasSubstr("unreadable"));
}

TEST_F(RunFactsOf, AFolderAreListedTheNewestFirst) {
  records_of("old").add(beginning(options_of(16), 1), 1000);
  records_of("new").add(beginning(options_of(16), 1), 2000);
  records_of(".removing-1-1").add(beginning(options_of(16), 1), 3000);
  make_folders(folder_ / "no-run");
  std::vector<std::string> names;
  for (const RunFacts& run : find_runs({folder_.string(), (folder_ / "old").string()})) names.push_back(run.name);
  EXPECT_EQ(names, (std::vector<std::string>{"new", "old"}));
  EXPECT_THROW(find_runs({(folder_ / "nowhere").string()}), UsageError);
}

TEST_F(RunFactsOf, ASweepAreThoseOfItsCells) {
  records_of("sweep/cells/one").add(beginning(options_of(16), 1), 1000);
  write_file_atomically(folder_ / "sweep" / kSweepFile, "{}");
  ASSERT_EQ(find_runs({(folder_ / "sweep").string()}).size(), 1U);
  EXPECT_EQ(find_runs({folder_.string()}).size(), 0U);
}

TEST_F(RunFactsOf, NarrowTerminalsLeaveColumnsOutButNeverTheName) {
  RecordFile file = records_of("a-run-with-a-long-name");
  file.add(beginning(options_of(16), 1), 1000);
  file.add(progress(10, 0.25), 1002);
  const std::vector<RunFacts> runs = {facts("a-run-with-a-long-name")};
  EXPECT_THAT(run_list(runs, 0), AllOf(HasSubstr("strategy"), HasSubstr("0.2500")));
  const std::string narrow = run_list(runs, 60);
  EXPECT_THAT(narrow, AllOf(HasSubstr("a-run-with-a-long-name  interrupted"), HasSubstr("0.2500"),
                            HasSubstr("(too narrow for: data, strategy")));
  EXPECT_LE(narrow.find('\n'), 60U);
  EXPECT_THAT(run_list(runs, 5), HasSubstr("a-run-with-a-long-name"));
}

TEST_F(RunFactsOf, OneRunInDetailNameOptionsCheckpointsAndFiles) {
  RecordFile file = records_of("a");
  TrainOptions options = options_of(16, "dear");
  options.model_options.width = 7;
  file.add(beginning(options, 2), 1000);
  file.add(CheckpointRecord{10, "elsewhere/checkpoints/step-0000000010", 1}, 1001);
  file.add(CheckpointRecord{20, "elsewhere/checkpoints/step-0000000020", 1}, 1002);
  make_folders(folder_ / "a" / "checkpoints" / "step-0000000020");
  const std::string text = describe(facts("a"));
  EXPECT_THAT(text, AllOf(HasSubstr("strategy             dear"), HasSubstr("width                7"),
                          HasSubstr("2 saved, 1 kept"), HasSubstr("step-0000000020"), Not(HasSubstr("step-0000000010")),
                          HasSubstr("tutti train --resume"), HasSubstr("records.jsonl  (")));
  const nlohmann::json json = details_json(facts("a"));
  EXPECT_EQ(json["options"]["width"], "7");
  EXPECT_EQ(json["checkpoints"][0]["is_kept"], false);
  EXPECT_EQ(json["checkpoints"][1]["is_kept"], true);
}

TEST_F(RunFactsOf, ForeignTextNeitherBreaksATerminalNorJson) {
  TrainOptions options = options_of(16);
  options.data.folder = "a\033[2Jb";
  records_of("a").add(beginning(options, 1), 1000);
  EXPECT_THAT(describe(facts("a")), AllOf(HasSubstr("a?[2Jb"), Not(HasSubstr("\033"))));
}

}  // namespace
}  // namespace tutti
