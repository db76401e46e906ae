#include "cli/recipe.h"

#include "fuzz/fuzz.h"

namespace tutti::fuzz {

std::string fuzz_one(std::string_view input) {
  return outcome([&] { parse_recipe(std::string(input), "r"); });
}

std::vector<std::string> seeds() {
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

}  // namespace tutti::fuzz
