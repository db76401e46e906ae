#include "cli/recipe.h"

#include "fuzz/fuzz.h"

namespace tutti::fuzz {

static std::string fuzz_recipe(std::string_view input) {
  return outcome([&] { parse_recipe(std::string(input), "r"); });
}

static std::vector<std::string> recipe_seeds() {
  return {"about: A test\nmodel: resnet18\nbatch: 128\nscale-lr: true\n",
          "model: &a x\nlr: *a\n",
          "{batch: 1, lr: [1, 2]}",
          "? batch\n: |\n  text\n",
          "--- \n...\n",
          "!!tag \"\\x41\" # why\n",
          "<<: {a: b}\n",
          "[[[[{{{{",
          "- - - -",
          "%YAML 1.2\n---\n"};
}

static const Target kRecipe("recipe", fuzz_recipe, recipe_seeds);

}  // namespace tutti::fuzz
