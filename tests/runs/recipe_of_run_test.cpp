#include "runs/recipe_of_run.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "cli/option_arguments.h"
#include "cli/recipe.h"
#include "runs/run_folder.h"
#include "tutti/error.h"

namespace tutti {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class RecipesOfRuns : public RunFolders {
 protected:
  std::string recipe_for(const TrainOptions& options, int64_t resumed_at_step = 0) const {
    remove_tree(folder_ / "a");
    records_of("a").add(beginning(options, options.ranks, resumed_at_step), 1000);
    return recipe_of(facts("a"));
  }
  /// What `tutti train` makes of a recipe.
  static nlohmann::json read_back(const std::string& recipe) {
    TrainOptions options;
    CLI::App app;
    add_options(app, train_option_table(options));
    std::vector<std::string> words = parse_recipe(recipe, "recipe.yaml").arguments;
    std::reverse(words.begin(), words.end());
    app.parse(words);
    return describe_options(options);
  }
};

/// Every recorded option has another value than usual.
TrainOptions unusual_options() {
  TrainOptions options;
  for (const TrainOption& option : train_option_table(options)) {
    if (!option.in_recipes || option.name.empty()) continue;
    std::visit(
        [&](const auto& field) {
          using Field = std::decay_t<decltype(field)>;
          if constexpr (std::is_same_v<Field, Scaled>)
            std::visit([](auto* value) { *value = 1234567; }, field.value);
          else if constexpr (std::is_same_v<Field, Negated>)
            *field.value = !*field.value;
          else if constexpr (std::is_same_v<Field, std::optional<bool>*>)
            *field = false;
          else if constexpr (std::is_same_v<Field, bool*>)
            *field = !*field;
          else if constexpr (std::is_same_v<Field, double*>)
            *field = 0.1 + 0.2;
          else if constexpr (std::is_same_v<Field, std::string*>)
            *field = option.names.empty() ? "a \"b\" # c: [d]\\\n'\t ü %" : option.names.back();
          else
            *field = 12345;
        },
        option.field);
  }
  return options;
}

TEST_F(RecipesOfRuns, RepeatEveryOption) {
  const TrainOptions options = unusual_options();
  EXPECT_EQ(read_back(recipe_for(options)), describe_options(options));
}

TEST_F(RecipesOfRuns, SayOnlyWhatIsNotAsUsual) {
  TrainOptions options = options_of(16, "dear");
  options.ranks = 2;
  options.learning_rate = 0;  // the optimizer's own, which records have as a number
  const std::string recipe = recipe_for(options);
  EXPECT_THAT(recipe, AllOf(HasSubstr("model: mnist-cnn\ndata: digits\nbatch: 16\nranks: 2\nstrategy: dear\n"),
                            Not(HasSubstr("lr:")), Not(HasSubstr("epochs:"))));
}

TEST_F(RecipesOfRuns, QuoteTextThatYamlWouldTakeForSomethingElse) {
  for (const char* const text : {"null", "-x", "a: b", "*a", "", "{}", "yes", "12", "~"}) {
    TrainOptions options;
    options.ranks = 1;
    options.data.vocabulary = text;
    EXPECT_EQ(read_back(recipe_for(options))["vocabulary"], text);
  }
}

TEST_F(RecipesOfRuns, RemarkWhatNoRecipeCanRepeat) {
  TrainOptions options;
  options.ranks = 1;
  options.recipe = "own.yaml\nbatch: 1";
  EXPECT_THAT(recipe_for(options, 50), AllOf(HasSubstr("# It was resumed at step 50"),
                                             HasSubstr("# It was begun with --recipe own.yaml batch: 1.\n")));
}

TEST_F(RecipesOfRuns, RefuseWhatTuttiTrainDidNotTrain) {
  records_of("early").add(EndRecord{true, 0, "no data"}, 1000);
  EXPECT_THROW(recipe_of(facts("early")), Error);
  RunRecord record;
  record.config = config_record({{"model", "my own"}}, 2, "cpu");
  records_of("python").add(record, 1000);
  EXPECT_THROW(recipe_of(facts("python")), Error);
}

}  // namespace
}  // namespace tutti
