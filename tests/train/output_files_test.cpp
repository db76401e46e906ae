#include "train/output_files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "base/files.h"
#include "tutti/error.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

class OutputFiles : public testing::Test {
 protected:
  OutputFiles() {
    char name[] = "/tmp/output_files_test.XXXXXX";
    folder_ = ::mkdtemp(name);
  }
  ~OutputFiles() override { remove_tree(folder_); }

  /// What is wrong with it, where the run's folder is `runs/a`, which is not there yet.
  std::string problem_of(const fs::path& file) const {
    try {
      require_writable("--trace", file, folder_ / "runs/a");
      return "";
    } catch (const UsageError& error) {
      return error.what();
    }
  }

  fs::path folder_;
};

TEST_F(OutputFiles, AreTakenWhereTheyCanBeWritten) {
  EXPECT_EQ(problem_of(""), "");
  EXPECT_EQ(problem_of("trace.json"), "");
  EXPECT_EQ(problem_of(folder_ / "trace.json"), "");
  std::ofstream(folder_ / "there") << "old";
  EXPECT_EQ(problem_of(folder_ / "there"), "");
  EXPECT_EQ(read_file(folder_ / "there"), "old");
  EXPECT_EQ(problem_of(folder_ / "runs/a/trace.json"), "");
  EXPECT_EQ(problem_of(folder_ / "runs/a/traces/trace.json"), "");
}

TEST_F(OutputFiles, AreRefusedWithTheReasonWhereTheyCannot) {
  const std::string here = folder_.string();
  EXPECT_EQ(problem_of(folder_), "--trace " + here + ": that is a folder: name a file in it");
  EXPECT_EQ(problem_of(folder_ / "new/"), "--trace " + here + "/new/: that is a folder: name a file in it");
  EXPECT_EQ(problem_of(folder_ / "no/trace.json"), "--trace " + here + "/no/trace.json: there is no folder " + here +
                                                       "/no: make it (mkdir -p), or name a file elsewhere");
  EXPECT_NE(problem_of(folder_ / "runs/b/trace.json"), "");  // another run
  EXPECT_NE(problem_of(folder_ / "runs/a/../b/trace.json"), "");
  std::ofstream(folder_ / "file") << "";
  EXPECT_EQ(problem_of(folder_ / "file/trace.json"),
            "--trace " + here + "/file/trace.json: " + here + "/file is no folder");
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  EXPECT_NE(problem_of(folder_ / "pipe").find("is no file"), std::string::npos);
  EXPECT_NE(problem_of("/proc/trace.json"), "");  // where also root cannot make one
}

TEST_F(OutputFiles, TellWhetherTheyLieInAFolder) {
  EXPECT_TRUE(lies_in("runs/a/x", "runs/a"));
  EXPECT_TRUE(lies_in("runs/a/x", "runs/a/"));
  EXPECT_TRUE(lies_in("./runs/a/b/../x", fs::absolute("runs/a")));
  EXPECT_FALSE(lies_in("runs/ab/x", "runs/a"));
  EXPECT_FALSE(lies_in("runs/a", "runs/a"));
  EXPECT_FALSE(lies_in("x", ""));
  EXPECT_FALSE(lies_in("", "runs/a"));
}

TEST_F(OutputFiles, ThatCannotBeWrittenInTheEndAreNoReasonToStop) {
  EXPECT_EQ(problem_of_writing(folder_ / "x", "text"), "");
  EXPECT_EQ(read_file(folder_ / "x"), "text");
  EXPECT_NE(problem_of_writing(folder_ / "gone/x", "text").find("No such file"), std::string::npos);
}

}  // namespace
}  // namespace tutti
