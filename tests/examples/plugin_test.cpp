// A model, a data set and a strategy from a shared library, in whole commands.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "data/idx_files.h"
#include "support/command.h"

namespace tutti::test {
namespace {

using ::testing::HasSubstr;

class Plugin : public ::testing::Test {
 protected:
  CommandResult train(const std::string& arguments) const {
    return run_command("cd " + folder_.path().string() +
                       " && " TUTTI_BINARY " train --threads 1 --device cpu --summary summary.json " + arguments);
  }
  std::string hash() const {
    return nlohmann::json::parse(read_file(folder_.path() / "summary.json")).at("weights_sha256").get<std::string>();
  }

  const std::string mine_ = "--plugin " TUTTI_STRIPES " --model stripes --data stripes ";
  TempFolder folder_;
};

TEST_F(Plugin, IsTrainedTestedAndResumedLikeAnythingElse) {
  const CommandResult straight = train(mine_ + "--ranks 2 --strategy two-halves --batch 20 --epochs 2 --name straight");
  ASSERT_EQ(straight.exit_code, 0) << straight.output;
  EXPECT_THAT(straight.output, HasSubstr("strategy two-halves"));
  EXPECT_THAT(straight.output, HasSubstr("test accuracy 1.0000"));
  const std::string expected = hash();
  ASSERT_EQ(train(mine_ + "--ranks 2 --strategy bsp --batch 20 --epochs 2").exit_code, 0);
  EXPECT_EQ(hash(), expected) << "two-halves ends with other weights than bsp";
  ASSERT_EQ(train(mine_ + "--ranks 2 --batch 20 --steps 60 --checkpoint-steps 60 --name part").exit_code, 0);
  const CommandResult resumed = train(mine_ + "--ranks 2 --batch 20 --steps 100 --resume part");
  ASSERT_EQ(resumed.exit_code, 0) << resumed.output;
  EXPECT_EQ(hash(), expected);
}

TEST_F(Plugin, IsFoundThroughTheEnvironmentByEveryCommand) {
  const CommandResult models = run_command("TUTTI_PLUGIN=" TUTTI_STRIPES " " TUTTI_BINARY " models");
  EXPECT_EQ(models.exit_code, 0) << models.output;
  EXPECT_THAT(models.output, HasSubstr("stripes"));
}

TEST_F(Plugin, ThatIsNoneIsRefusedWithTheReason) {
  folder_.write("text.so", "not a library");
  for (const auto& [file, reason] : {std::pair{"text.so", "cannot be loaded"}, std::pair{"missing.so", "No such file"},
                                     std::pair{TUTTI_LIBRARY, "no plug-in of Tutti"}}) {
    const CommandResult result = train(std::string("--plugin ") + file);
    EXPECT_EQ(result.exit_code, 2) << result.output;
    EXPECT_THAT(result.output, HasSubstr(reason));
  }
  const CommandResult twice = train(std::string("--plugin " TUTTI_STRIPES ":" TUTTI_STRIPES));
  EXPECT_EQ(twice.exit_code, 2);
  EXPECT_THAT(twice.output, HasSubstr("there is a model 'stripes' already"));
  const CommandResult without = train("--model stripes");
  EXPECT_EQ(without.exit_code, 2);
  EXPECT_THAT(without.output, HasSubstr("unknown model 'stripes'"));
}

}  // namespace
}  // namespace tutti::test
