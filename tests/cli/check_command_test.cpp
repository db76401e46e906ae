// What `tutti check` and the start of `tutti train` say with the real binary, libtorch in it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/files.h"
#include "support/command.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class CheckCommand : public ::testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { remove_tree(folder_); }

  /// The same command on two ranks over MPI, the second from a copy of the binary that has one byte more.
  CommandResult with_another_binary(const std::string& arguments) const {
    const std::string other = (folder_ / "tutti").string();
    fs::copy_file(TUTTI_BINARY, other, fs::copy_options::overwrite_existing);
    std::ofstream(other, std::ios::app) << 'x';
    return run_command("cd " + folder_.string() + " && mpirun -np 1 " TUTTI_BINARY " " + arguments + " : -np 1 " +
                       other + " " + arguments);
  }

  const fs::path folder_ = fs::path(::testing::TempDir()) / ("check_command_test_" + std::to_string(::getpid()));
};

TEST_F(CheckCommand, ComparesLibtorchAndAModel) {
  const std::string check = "cd " + folder_.string() + " && " TUTTI_BINARY " check --ranks 2 --model ";
  const CommandResult unknown = run_command(check + "resnet81");
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.output, HasSubstr("did you mean 'resnet18'?"));
  const CommandResult known = run_command(check + "resnet18");
  EXPECT_EQ(known.exit_code, 0) << known.output;
  EXPECT_THAT(known.output, AllOf(HasSubstr("ok: libtorch: "), HasSubstr("(build id "),
                                  HasSubstr("ok: model: resnet18, 62 parameter tensors")));
}

TEST_F(CheckCommand, FindsAnotherBinary) {
  if (run_command("mpirun --version").exit_code != 0) GTEST_SKIP() << "there is no mpirun";
  const CommandResult result = with_another_binary("check --transport mpi");
  EXPECT_EQ(result.exit_code, 1) << result.output;
  EXPECT_THAT(result.output, AllOf(HasSubstr("problem: binary differs: SHA-256 "), HasSubstr("(rank 1)")));
}

TEST_F(CheckCommand, TrainRefusesAnotherBinary) {
  if (run_command("mpirun --version").exit_code != 0) GTEST_SKIP() << "there is no mpirun";
  const CommandResult result = with_another_binary("train --steps 2 --transport mpi");
  EXPECT_EQ(result.exit_code, 2) << result.output;
  EXPECT_THAT(result.output, AllOf(HasSubstr("tutti: the binary differs: SHA-256 "), HasSubstr("(rank 1)"),
                                   HasSubstr("`tutti check` shows")));
  EXPECT_THAT(result.output, Not(HasSubstr("epoch")));
}

}  // namespace
}  // namespace tutti
