#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/command.h"

namespace tutti {
namespace {

TEST(ModelsCommand, ListsWhatModelsAskFor) {
  const CommandResult result = run_command(std::string(TUTTI_BINARY) + " models mnist-cnn resnet18");
  EXPECT_EQ(result.exit_code, 0) << result.output;
  for (const char* text : {"mnist-cnn", "resnet18", "11,689,512", "46.8 MB", "3.628 GFLOP"})
    EXPECT_NE(result.output.find(text), std::string::npos) << text << " is not in:\n" << result.output;
}

TEST(ModelsCommand, ListsAllModelsAsJson) {
  const CommandResult result = run_command(std::string(TUTTI_BINARY) + " models --json");
  ASSERT_EQ(result.exit_code, 0) << result.output;
  const auto models = nlohmann::json::parse(result.output);
  EXPECT_EQ(models.size(), 9U);
  for (const auto& model : models) {
    EXPECT_EQ(model.at("gradient_bytes"), 4 * model.at("parameters").get<int64_t>());
    EXPECT_GT(model.at("forward_flop"), 0);
    EXPECT_GT(model.at("activation_bytes"), 0);
  }
}

TEST(ModelsCommand, RefusesUnknownNamesWithASuggestion) {
  const CommandResult result = run_command(std::string(TUTTI_BINARY) + " models resnet19");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.output.find("did you mean 'resnet18'"), std::string::npos) << result.output;
}

TEST(ModelsCommand, SaysThatItsOutputCouldNotBeWritten) {
  const CommandResult result = run_command("( " TUTTI_BINARY " models mlp > /dev/full )");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.output.find("tutti: stdout: No space left on device"), std::string::npos) << result.output;
  EXPECT_EQ(run_command("bash -o pipefail -c '" TUTTI_BINARY " models mlp | head -c 1'").exit_code, 0);
}

}  // namespace
}  // namespace tutti
