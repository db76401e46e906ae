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

/// A folder with two runs and a recipe, and what bash offers there.
class Completion : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* const run : {"first", "with $(touch evil)"}) {
      make_folders(folder_ / "runs" / run);
      write_file_atomically(folder_ / "runs" / run / "records.jsonl", "");
    }
    make_folders(folder_ / "runs" / ".removing-1-1");
    write_file_atomically(folder_ / "runs" / ".removing-1-1" / "records.jsonl", "");
    make_folders(folder_ / "recipes");
    write_file_atomically(folder_ / "recipes" / "mine.yaml", "batch: 1\n");
    static const std::string made = script("bash");  // once for all tests
    write_file_atomically(folder_ / "script", made);
  }
  void TearDown() override { remove_tree(folder_); }

  static std::string script(const std::string& shell) {
    const CommandResult made = run_command(std::string(TUTTI_BINARY) + " completion " + shell);
    EXPECT_EQ(made.exit_code, 0) << made.output;
    return made.output;
  }
  /// For the last of these words, as they are in COMP_WORDS.
  std::string offered(const std::string& words) const {
    write_file_atomically(folder_ / "ask",
                          "source ./script\nCOMP_WORDS=(" + words +
                              ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_tutti\nprintf '%s ' \"${COMPREPLY[@]}\"\n");
    return run_command("cd " + folder_.string() + " && bash ./ask").output;
  }

  const fs::path folder_ = fs::temp_directory_path() / ("tutti-completion-test-" + std::to_string(::getpid()));
};

TEST_F(Completion, OfBashKnowsCommandsOptionsValuesAndNames) {
  EXPECT_EQ(run_command("cd " + folder_.string() + " && bash -c 'source ./script && complete -p tutti'").output,
            "complete -o default -F _tutti tutti\n");
  EXPECT_EQ(offered("tutti tra"), "train ");
  EXPECT_THAT(offered("tutti ''"), AllOf(HasSubstr("train "), HasSubstr("runs "), Not(HasSubstr("lint "))));
  EXPECT_THAT(offered(TUTTI_SOURCE_DIR "/tutti ''"), AllOf(HasSubstr("train "), HasSubstr("lint ")));
  EXPECT_EQ(offered("tutti train --checkpoint-m"), "--checkpoint-minutes ");
  EXPECT_EQ(offered("tutti train --model resnet1"), "resnet18 resnet101 ");
  EXPECT_EQ(offered("tutti train --device = cu"), "cuda ");
  EXPECT_EQ(offered("tutti train --no-eval --strategy dea"), "dear ");
  EXPECT_THAT(offered("tutti train --recipe ''"), AllOf(HasSubstr("mine "), HasSubstr("resnet18-mnist ")));
  EXPECT_EQ(offered("tutti train --epochs ''"), " ");  // any number
  EXPECT_EQ(offered("tutti runs sh"), "show ");
  EXPECT_EQ(offered("tutti runs show --js"), "--json ");
  EXPECT_EQ(offered("tutti runs compare first fi"), "first ");
  EXPECT_EQ(offered("tutti train --resume fi"), "first ");
  EXPECT_EQ(offered("tutti explain --runs elsewhere ''"), " ");
  EXPECT_EQ(offered("tutti cluster up --network 10g"), "10gbe ");
  EXPECT_EQ(offered("tutti slurm --nodes 2 -- train --checkpoint-m"), "--checkpoint-minutes ");
}

TEST_F(Completion, OfBashRunsNothingThatANameSays) {
  EXPECT_EQ(offered("tutti status w"), "with\\ \\$\\(touch\\ evil\\) ");
  offered("tutti train --model '$(touch evil)'");
  EXPECT_FALSE(fs::exists(folder_ / "evil"));
}

TEST_F(Completion, OfZshHasHelpBesideNames) {
  const std::string zsh = script("zsh");
  EXPECT_THAT(zsh, AllOf(HasSubstr("#compdef tutti\n"), HasSubstr("'--strategy:how gradients are synchronized"),
                         HasSubstr("_tutti_offer bsp wfbp")));
  write_file_atomically(folder_ / "_tutti", zsh);
  EXPECT_EQ(run_command("! command -v zsh >/dev/null || zsh -n " + (folder_ / "_tutti").string()).output, "");
}

TEST_F(Completion, OfAnotherShellIsRefused) {
  const CommandResult result = run_command(std::string(TUTTI_BINARY) + " completion fsh");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.output, HasSubstr("unknown shell 'fsh'; did you mean 'zsh'?"));
}

}  // namespace
}  // namespace tutti
