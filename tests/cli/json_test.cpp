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

constexpr const char* kProgram = TUTTI_BINARY;
constexpr const char* kPlain = TUTTI_PLAN_TOOL;  // the same commands, without libtorch

/// What a command prints to stdout; null where that is no JSON or the command fails.
json output_of(const std::string& command) {
  const CommandResult result = run_command("( cd / && " + command + " 2>/dev/null )");
  EXPECT_EQ(result.exit_code, 0) << command << "\n" << result.output;
  json value = json::parse(result.output, nullptr, /*allow_exceptions=*/false);
  EXPECT_FALSE(value.is_discarded()) << command << " printed:\n" << result.output;
  return value.is_discarded() ? json() : value;
}

TEST(JsonOutput, OfTheVersionHasItsCommitAndBuild) {
  const json version = output_of(std::string(kProgram) + " --version --json");
  EXPECT_TRUE(version.contains("version") && version.contains("commit") && version.contains("build"));
}

TEST(JsonOutput, OfDataHasWhatIsThereAndWhatIsNot) {
  bool has_digits = false;
  for (const json& set : output_of(std::string(kProgram) + " data --json")) {
    has_digits |= set["name"] == "digits" && set["train"] > 0 && set["problem"].is_null();
    EXPECT_TRUE(set["name"].is_string());
  }
  EXPECT_TRUE(has_digits);
}

TEST(JsonOutput, OfSweepsHasTheirCells) {
  if (TUTTI_HAS_YAML == 0) GTEST_SKIP() << "built without yaml-cpp";
  const json sweeps = output_of(std::string(kProgram) + " bench --list --json");
  ASSERT_FALSE(sweeps.empty());
  for (const json& sweep : sweeps) EXPECT_GT(sweep["cells"], 0);
}

TEST(JsonOutput, OfAPlanHasEverySizeAndItsBestStrategy) {
  if (TUTTI_HAS_YAML == 0) GTEST_SKIP() << "built without yaml-cpp";
  const json plan = output_of(std::string(kPlain) + " plan --cluster 10gbe --model resnet18 --gpus 4,8 --brief --json");
  ASSERT_EQ(plan["sizes"].size(), 2U);
  EXPECT_EQ(plan["sizes"][1]["ranks"], 8);
  EXPECT_TRUE(plan["sizes"][1]["best"].is_string());
  EXPECT_GT(plan["sizes"][1]["strategies"][0]["samples_per_s"], 0);
  EXPECT_GT(output_of(std::string(kPlain) + " plan --cluster list --json").size(), 3U);
}

TEST(JsonOutput, OfACheckIsPrintedOrWrittenToAFile) {
  const std::string check = std::string(kPlain) + " check --ranks 2 --runs /tmp --json";
  EXPECT_EQ(output_of(check)["ranks"].size(), 2U);
  const fs::path file = fs::temp_directory_path() / ("tutti-json-test-" + std::to_string(::getpid()));
  const CommandResult result = run_command(check + " " + file.string());
  EXPECT_NE(result.output.find("ok: "), std::string::npos) << result.output;
  EXPECT_EQ(json::parse(read_file(file))["ranks"].size(), 2U);
  fs::remove(file);
}

}  // namespace
}  // namespace tutti
