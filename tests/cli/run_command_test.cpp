// `tutti run` as people use it: ranks of programs that know nothing of Tutti.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/files.h"
#include "support/command.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

CommandResult tutti_run(const std::string& arguments) { return run_command(TUTTI_PLAN_TOOL " run " + arguments); }

TEST(RunCommand, EveryRankKnowsItsPlaceAndSpeaksWithItsNumber) {
  const CommandResult result =
      tutti_run("-n 3 --threads 2 -- sh -c 'echo $TUTTI_RANK of $TUTTI_SIZE, $OMP_NUM_THREADS'");
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, AllOf(HasSubstr("0 of 3, 2\n"), HasSubstr("[rank 1] 1 of 3, 2\n"),
                                   HasSubstr("[rank 2] 2 of 3, 2\n"), Not(HasSubstr("[rank 0]"))));
}

TEST(RunCommand, OptionsAfterTheMarkAreTheProgramsOwn) {
  const CommandResult result = tutti_run("-n 1 -- echo -n --hosts x --help -- y");
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_EQ(result.output, "--hosts x --help -- y");
}

TEST(RunCommand, TheFirstRankThatFailsGivesTheCodeAndIsNamed) {
  const CommandResult result = tutti_run("-n 2 -- sh -c 'test $TUTTI_RANK = 0 && exec sleep 60; exit 7'");
  EXPECT_EQ(result.exit_code, 7) << result.output;
  EXPECT_THAT(result.output, HasSubstr("rank 1 of 2 failed: exit code 7"));
}

TEST(RunCommand, StartsAllRanksAgainWhenOneHasFailed) {
  const fs::path folder = fs::path(testing::TempDir()) / ("run_command_test_" + std::to_string(::getpid()));
  fs::create_directories(folder);
  // Rank 1 fails twice: so often it has left a mark.
  const std::string program = "-- sh -c 'test $TUTTI_RANK = 0 && exit 0; echo x >> " + (folder / "marks").string() +
                              "; test $(wc -l < " + (folder / "marks").string() + ") -ge 3 || exit 9'";
  const CommandResult mended = tutti_run("-n 2 --max-restarts 2 " + program);
  EXPECT_EQ(mended.exit_code, 0) << mended.output;
  EXPECT_THAT(mended.output,
              AllOf(HasSubstr("restart 1 of 2, from the program's own checkpoint"), HasSubstr("restart 2 of 2")));
  fs::remove(folder / "marks");
  const CommandResult given_up = tutti_run("-n 2 --max-restarts 1 " + program);
  EXPECT_EQ(given_up.exit_code, 9) << given_up.output;
  remove_tree(folder);
}

TEST(RunCommand, DoesNotTryAgainWhatCannotBeExecuted) {
  const CommandResult result = tutti_run("-n 2 --max-restarts 3 -- /no/such/program");
  EXPECT_EQ(result.exit_code, 127) << result.output;
  EXPECT_THAT(result.output, AllOf(HasSubstr("cannot execute /no/such/program"), Not(HasSubstr("restart"))));
}

TEST(RunCommand, SaysWhatIsMissingOrContradicts) {
  const CommandResult without_ranks = tutti_run("-- true");
  EXPECT_EQ(without_ranks.exit_code, 2);
  EXPECT_THAT(without_ranks.output, HasSubstr("how many ranks? Give -n N"));
  EXPECT_EQ(tutti_run("-n 2").exit_code, 2);
  EXPECT_EQ(tutti_run("-n 0 -- true").exit_code, 2);
  EXPECT_THAT(tutti_run("-n 3 --hosts a:2 -- true").output, HasSubstr("-n 3 contradicts --hosts a:2"));
  EXPECT_THAT(run_command("TUTTI_RANK=0 TUTTI_SIZE=2 " TUTTI_PLAN_TOOL " run -n 2 -- true").output,
              HasSubstr("tutti has started 2 processes already"));
}

TEST(RunCommand, StartsRanksOnHostsByMpirun) {
  if (run_command("mpirun --version").exit_code != 0) GTEST_SKIP() << "there is no mpirun";
  const CommandResult result =
      tutti_run("--hosts localhost:2 -- sh -c 'echo place $OMPI_COMM_WORLD_RANK of $OMPI_COMM_WORLD_SIZE'");
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, AllOf(HasSubstr("place 0 of 2"), HasSubstr("place 1 of 2")));
}

}  // namespace
}  // namespace tutti
