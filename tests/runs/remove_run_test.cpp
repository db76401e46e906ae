#include "runs/remove_run.h"

#include <gmock/gmock.h>

#include <fstream>

#include "base/folder_lock.h"
#include "record/run_finder.h"
#include "runs/run_folder.h"
#include "tutti/error.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class Removals : public RunFolders {
 protected:
  void SetUp() override {
    RunFolders::SetUp();
    records_of("a").add(beginning(options_of(16), 1), 1000);
  }
  std::string refusal(const std::string& run) const {
    try {
      const RemovableRun removable(run, folder_);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  }
};

TEST_F(Removals, TakeAllOfARunAndNothingElse) {
  make_folders(folder_ / "a" / "checkpoints" / "step-0000000010");
  write_file_atomically(folder_ / "a" / "checkpoints" / "step-0000000010" / "weights", "12345");
  write_file_atomically(folder_ / "kept", "x");
  fs::create_symlink(folder_ / "kept", folder_ / "a" / "link");
  RemovableRun run("a", folder_);
  EXPECT_GT(run.bytes(), 5U);
  run.remove();
  EXPECT_FALSE(fs::exists(folder_ / "a"));
  EXPECT_TRUE(fs::exists(folder_ / "kept"));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
}

TEST_F(Removals, RefuseARunThatIsGoingOn) {
  const FolderLock lock(folder_ / "a");
  EXPECT_THAT(refusal("a"), HasSubstr("is going on (process"));
  EXPECT_TRUE(fs::exists(folder_ / "a" / kRecordsFile));
}

TEST_F(Removals, KeepOthersFromBeginningThere) {
  const RemovableRun run("a", folder_);
  EXPECT_NE(lock_holder(folder_ / "a"), "");
}

TEST_F(Removals, RefuseWhatIsNoRun) {
  make_folders(folder_ / "other");
  EXPECT_THAT(refusal("other"), HasSubstr("no run 'other'"));
  EXPECT_THAT(refusal("nowhere"), HasSubstr("no run 'nowhere'"));
  EXPECT_THAT(refusal("a/../a"), HasSubstr("without '.' and '..'"));
  EXPECT_THAT(refusal((folder_ / "a" / "." / "").string()), HasSubstr("without '.' and '..'"));
  EXPECT_THAT(refusal((folder_ / "a" / kRecordsFile).string()), HasSubstr("is a file"));
  fs::create_directory_symlink(folder_ / "a", folder_ / "link");
  EXPECT_THAT(refusal("link"), HasSubstr("is a link"));
  EXPECT_THAT(refusal((folder_ / "link" / "").string()), HasSubstr("is a link"));
  // Somebody's records of other things, under our name.
  make_folders(folder_ / "cells");
  std::ofstream(folder_ / "cells" / kRecordsFile) << R"({"record":"measurement","time":1})"
                                                  << "\n";
  EXPECT_THAT(refusal("cells"), HasSubstr("is not the folder of a run"));
  write_file_atomically(folder_ / "a" / kSweepFile, "{}");
  EXPECT_THAT(refusal("a"), HasSubstr("is not the folder of a run"));
  EXPECT_TRUE(fs::exists(folder_ / "a" / kRecordsFile));
}

TEST_F(Removals, TakeARunThatFailedBeforeItsFirstRecord) {
  make_folders(folder_ / "early");
  write_file_atomically(folder_ / "early" / kRecordsFile, "");
  RemovableRun(folder_ / "early" / "", "elsewhere").remove();
  EXPECT_FALSE(fs::exists(folder_ / "early"));
}

TEST_F(Removals, ThatWereKilledAreNoRunsAndAreFinishedLater) {
  records_of(".removing-1-1").add(beginning(options_of(16), 1), 1000);
  finish_removals(folder_);
  EXPECT_FALSE(fs::exists(folder_ / ".removing-1-1"));
  EXPECT_TRUE(fs::exists(folder_ / "a"));
}

}  // namespace
}  // namespace tutti
