#include "cli/recipe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/option_arguments.h"
#include "data/idx_files.h"
#include "support/command.h"

namespace tutti::test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Recipes : public ::testing::Test {
 protected:
  void SetUp() override {
    if (TUTTI_HAS_YAML == 0) GTEST_SKIP() << "built without yaml-cpp";
  }
  static std::string parsing_error(const std::string& text) {
    return error_text([&] {
      parse_recipe(text, "r.yaml", [](const std::string& name, const std::string& value) {
        return problem_of_value(name, value, {{"resnet18"}});
      });
    });
  }
};

TEST_F(Recipes, BecomeOptions) {
  const Recipe recipe = parse_recipe("about: A test\n# why\nmodel: resnet18\nbatch: 128\nscale-lr: true\n", "r.yaml");
  EXPECT_EQ(recipe.about, "A test");
  EXPECT_THAT(recipe.arguments, ElementsAre("--model=resnet18", "--batch=128", "--scale-lr=true"));
}

TEST_F(Recipes, NameTheLineOfAnUnknownOptionAndTheNearestOne) {
  EXPECT_THAT(parsing_error("model: resnet18\nbacth: 3\n"),
              HasSubstr("r.yaml:2: unknown option 'bacth'; did you mean 'batch'?"));
  EXPECT_THAT(parsing_error("recipe: other\n"), HasSubstr("r.yaml:1: 'recipe' is not for recipes"));
}

TEST_F(Recipes, NameTheLineOfAValueThatAnOptionCannotHave) {
  EXPECT_THAT(parsing_error("model: resnet18\nbatch: abc\n"), HasSubstr("r.yaml:2: --batch: 'abc' is no whole number"));
  EXPECT_THAT(parsing_error("seed: -1\n"), HasSubstr("r.yaml:1: --seed: '-1' is no whole number of 0 or more"));
  EXPECT_THAT(parsing_error("\nlr: fast\n"), HasSubstr("r.yaml:2: --lr: 'fast' is no number"));
  EXPECT_THAT(parsing_error("bucket-mb: big\n"), HasSubstr("r.yaml:1: --bucket-mb: 'big' is no number"));
  EXPECT_THAT(parsing_error("batch: 0\n"), HasSubstr("r.yaml:1: --batch is 0: it must be at least 1"));
  EXPECT_THAT(parsing_error("no-eval: perhaps\n"),
              HasSubstr("r.yaml:1: --no-eval: 'perhaps' is neither true nor false"));
  EXPECT_THAT(parsing_error("no-augment: perhaps\n"), HasSubstr("r.yaml:1: "));
  EXPECT_THAT(parsing_error("strategy: wfpb\n"), HasSubstr("r.yaml:1: unknown strategy 'wfpb'; did you mean 'wfbp'?"));
  EXPECT_THAT(parsing_error("model: resnet81\n"), HasSubstr("r.yaml:1: unknown model 'resnet81'"));
}

TEST_F(Recipes, DoNotDecideWhereFilesAreWritten) {
  for (const char* option : {"trace", "runs", "summary", "resume"})
    EXPECT_THAT(parsing_error(fmt::format("batch: 1\n{}: ../../victim\n", option)),
                HasSubstr(fmt::format("r.yaml:2: '{0}' is not for recipes: give --{0} on the command line", option)));
}

TEST_F(Recipes, NameTheLineOfWhatIsNoRecipe) {
  EXPECT_THAT(parsing_error("model: resnet18\nbatch: [1, 2]\n"), HasSubstr("r.yaml:2: 'batch' needs one value"));
  EXPECT_THAT(parsing_error("model:\n"), HasSubstr("r.yaml:1: 'model' needs one value"));
  EXPECT_THAT(parsing_error("batch: 1\nbatch: 2\n"), HasSubstr("r.yaml:2: 'batch' is there twice"));
  EXPECT_THAT(parsing_error("? [a]\n: b\n"), HasSubstr("r.yaml:1: an option's name is expected"));
  EXPECT_THAT(parsing_error("model: x\nbatch: [1, 2"), HasSubstr("r.yaml:2: not YAML"));
  EXPECT_THAT(parsing_error("- model\n"), HasSubstr("r.yaml: a recipe is a list of lines"));
  EXPECT_THAT(parsing_error(""), HasSubstr("r.yaml: a recipe is a list of lines"));
}

TEST_F(Recipes, ComeBeforeWhatAPersonTyped) {
  const TempFolder folder;
  const std::string path = folder.write("own.yaml", "batch: 1\nmodel: x\n").string();
  EXPECT_THAT(expand_recipe({"train", "--batch", "9", "--recipe", path}),
              ElementsAre("train", "--batch=1", "--model=x", "--batch", "9", "--recipe", path));
  EXPECT_THAT(expand_recipe({"train", "--recipe=" + path}),
              ElementsAre("train", "--batch=1", "--model=x", "--recipe=" + path));
  EXPECT_THAT(expand_recipe({"train", "--batch", "9"}), ElementsAre("train", "--batch", "9"));
}

TEST_F(Recipes, OfAnUnknownNameSuggestAnother) {
  EXPECT_THAT(error_text([] {
                expand_recipe({"train", "--recipe", "resnet18-mnits"});
              }),
              HasSubstr("did you mean 'resnet18-mnist'?"));
}

TEST_F(Recipes, OfThePublishedExperimentsAreAllThereAndValid) {
  const CommandResult result = run_command("cd / && " TUTTI_BINARY " train --recipe list");
  EXPECT_EQ(result.exit_code, 0) << result.output;
  for (const char* name : {"unet-workers", "resnet18-mnist", "resnet50-mnist", "resnet101-mnist", "transformer-sst5",
                           "resnet50-strategies", "bert-base-strategies", "mnist-cnn-cluster", "bigmnist-cluster",
                           "bert-gutenberg", "unet-nuclei"})
    EXPECT_THAT(result.output, HasSubstr(std::string(name) + " "));
}

TEST_F(Recipes, RunAndAreOverriddenByTheCommandLine) {
  const TempFolder folder;
  folder.write("own.yaml", "data: digits\nsteps: 2\nbatch: 7\nno-eval: true\naugment: false\nscale-lr: true\n");
  const CommandResult result =
      run_command("cd " + folder.path().string() +
                  " && " TUTTI_BINARY " train --recipe own.yaml --batch 5 --ranks 1 --device cpu --summary s.json");
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("1 rank × batch 5,"));
  const std::string summary = read_file(folder.path() / "s.json");
  EXPECT_THAT(summary, AllOf(HasSubstr("\"samples\": 10,"), HasSubstr("\"augment\": false"),
                             HasSubstr("\"recipe\": \"own.yaml\""), HasSubstr("\"scale_lr\": true")));
}

}  // namespace
}  // namespace tutti::test
