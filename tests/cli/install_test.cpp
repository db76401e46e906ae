#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/files.h"
#include "support/command.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(AnInstalledProgram, FindsItsFilesBesideItself) {
  if (TUTTI_HAS_YAML == 0) GTEST_SKIP() << "built without yaml-cpp";
  const fs::path prefix = fs::temp_directory_path() / ("tutti-install-test-" + std::to_string(::getpid()));
  const CommandResult installed =
      run_command("cmake --install " TUTTI_BUILD_DIR " --component program --prefix " + prefix.string());
  ASSERT_EQ(installed.exit_code, 0) << installed.output;
  EXPECT_TRUE(fs::exists(prefix / "share/bash-completion/completions/tutti"));
  EXPECT_TRUE(fs::exists(prefix / "share/zsh/site-functions/_tutti"));
  EXPECT_TRUE(fs::exists(prefix / "share/tutti/published/strategies_networks.csv"));
  EXPECT_TRUE(fs::exists(prefix / "share/doc/tutti/docs/README.md"));
  // Not those of the source: these two differ.
  const fs::path recipes = prefix / "share/tutti/recipes";
  fs::rename(recipes / "resnet18-mnist.yaml", recipes / "renamed.yaml");
  const std::string listed = run_command("cd / && " + (prefix / "bin/tutti").string() + " train --recipe list").output;
  EXPECT_THAT(listed, HasSubstr("\nrenamed "));
  EXPECT_THAT(listed, Not(HasSubstr("resnet18-mnist ")));
  remove_tree(prefix);
}

}  // namespace
}  // namespace tutti
