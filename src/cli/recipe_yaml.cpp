#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <set>

#include "base/names.h"
#include "cli/recipe.h"
#include "options/option_table.h"
#include "tutti/error.h"

namespace tutti {
namespace {

/// YAML's own complaints, with the place in front.
[[noreturn]] void fail(const std::string& file, const YAML::Mark& mark, const std::string& what) {
  throw UsageError("{}:{}: {}", file, mark.line + 1, what);
}

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

Recipe parse_recipe(const std::string& text, const std::string& file, const ProblemOfOption& problem_of) {
  YAML::Node root;
  try {
    root = YAML::Load(text);
  } catch (const YAML::Exception& error) {
    fail(file, error.mark, "not YAML: " + error.msg);
  }
  if (!root.IsMap()) throw UsageError("{}: a recipe is a list of lines like `batch: 64`", file);

  const std::vector<std::string> known = recipe_keys();
  Recipe recipe;
  std::set<std::string> seen;
  for (const auto& entry : root) {
    if (!entry.first.IsScalar()) fail(file, entry.first.Mark(), "an option's name is expected before ':'");
    const std::string key = entry.first.Scalar();
    if (!entry.second.IsScalar()) fail(file, entry.first.Mark(), fmt::format("'{}' needs one value", key));
    if (!seen.insert(key).second) fail(file, entry.first.Mark(), fmt::format("'{}' is there twice", key));
    const std::string& value = entry.second.Scalar();
    if (key == "about") {
      recipe.about = value;
      continue;
    }
    if (has(keys_outside_recipes(), key))
      fail(file, entry.first.Mark(), fmt::format("'{}' is not for recipes: give --{} on the command line", key, key));
    if (!has(known, key)) {
      const std::string nearest = nearest_name(key, known);
      fail(file, entry.first.Mark(),
           fmt::format("unknown option '{}'{} A recipe sets options of `tutti train`, without their dashes.", key,
                       nearest.empty() ? "." : fmt::format("; did you mean '{}'?", nearest)));
    }
    if (const std::string problem = problem_of ? problem_of(key, value) : ""; !problem.empty())
      fail(file, entry.second.Mark(), problem);
    recipe.arguments.push_back(fmt::format("--{}={}", key, value));
  }
  return recipe;
}

}  // namespace tutti
