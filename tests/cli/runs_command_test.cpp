#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "support/command.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

class RunsCommand : public testing::Test {
 protected:
  void SetUp() override { make_folders(folder_); }
  void TearDown() override { remove_tree(folder_); }

  CommandResult train(const std::string& arguments) const {
    return run_command("cd " + folder_.string() + " && " TUTTI_BINARY " train " + arguments);
  }
  /// `tutti runs`, without libtorch.
  CommandResult runs(const std::string& arguments) const {
    return run_command("cd " + folder_.string() + " && " TUTTI_PLAN_TOOL " runs " + arguments);
  }

  const fs::path folder_ = fs::temp_directory_path() / ("tutti-runs-command-test-" + std::to_string(::getpid()));
};

TEST_F(RunsCommand, RepeatsARunWithTheSameWeights) {
  if (TUTTI_HAS_YAML == 0) GTEST_SKIP() << "built without yaml-cpp";
  const std::string small = "--train-size 300 --test-size 101 --steps 8 --log-every 2 --threads 1 --device cpu ";
  ASSERT_EQ(train(small + "--name first --ranks 2 --batch 16 --strategy dear --lr 0.03 --no-augment").exit_code, 0);
  const CommandResult written = runs("recipe first -o first.yaml");
  ASSERT_EQ(written.exit_code, 0) << written.output;
  const CommandResult again = train("--recipe first.yaml --name again");
  ASSERT_EQ(again.exit_code, 0) << again.output;
  const json compared = json::parse(runs("compare first again --json").output);
  EXPECT_EQ(compared["has_same_weights"], true);
  EXPECT_EQ(compared["losses_from"], "progress");
  EXPECT_THAT(runs("compare first again").output, HasSubstr("All ended with the same weights"));
  EXPECT_THAT(runs("").output, AllOf(HasSubstr("again  finished"), HasSubstr("first  finished")));

  EXPECT_EQ(runs("rm again </dev/null").exit_code, 2);  // nobody can be asked
  EXPECT_EQ(runs("rm again nowhere --yes").exit_code, 2);
  EXPECT_TRUE(fs::exists(folder_ / "runs" / "again"));
  EXPECT_EQ(runs("rm again again --yes").output, "runs/again: removed\n");
  EXPECT_FALSE(fs::exists(folder_ / "runs" / "again"));
  EXPECT_TRUE(fs::exists(folder_ / "runs" / "first"));
}

TEST_F(RunsCommand, ShowsWhyARunFailed) {
  ASSERT_EQ(train("--name bad --train-size 300 --steps 8 --ranks 1 --threads 1 --device cpu --lr 1e30").exit_code, 86);
  const json run = json::parse(runs("show bad --json").output);
  EXPECT_EQ(run["state"], "failed");
  EXPECT_THAT(run["problem"].get<std::string>(), HasSubstr("loss is not finite"));
}

TEST_F(RunsCommand, SaysWhatWasMeant) {
  EXPECT_THAT(runs("").output, HasSubstr("no runs in runs"));
  make_folders(folder_ / "runs" / "first");
  write_file_atomically(folder_ / "runs" / "first" / "records.jsonl", "");
  EXPECT_THAT(runs("first").output, HasSubstr("did you mean `tutti runs show first`?"));
  EXPECT_THAT(runs("shwo first").output, HasSubstr("did you mean `tutti runs show`?"));
  EXPECT_THAT(runs("show frist").output, HasSubstr("did you mean 'first'?"));
  EXPECT_THAT(runs("compare first").output, HasSubstr("takes two runs or more"));
  EXPECT_THAT(runs("show first second").output, HasSubstr("takes one run"));
  EXPECT_THAT(runs("recipe first").output, HasSubstr("do not say with which options it began"));
}

}  // namespace
}  // namespace tutti
