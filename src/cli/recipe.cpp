#include "cli/recipe.h"

#include <algorithm>
#include <filesystem>

#include "base/files.h"
#include "base/names.h"
#include "base/shipped_files.h"
#include "base/yaml_files.h"
#include "tutti/error.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

/// Recipes by name; those in ./recipes come before those that are shipped.
NamedFiles recipe_files() { return yaml_files({"recipes", shipped_folder("recipes", TUTTI_RECIPES)}); }

Recipe read_recipe(const fs::path& path, const ProblemOfOption& problem_of = {}) {
  return parse_recipe(read_file(path), path.string(), problem_of);
}

}  // namespace

Recipe find_recipe(const std::string& name, const ProblemOfOption& problem_of) {
  std::error_code ignored;
  if (fs::is_regular_file(name, ignored)) return read_recipe(name, problem_of);
  const NamedFiles files = recipe_files();
  if (const auto found = files.find(name); found != files.end()) return read_recipe(found->second, problem_of);
  throw UsageError(unknown_name("recipe", name, names_in(files)));
}

std::vector<std::string> recipe_names() { return names_in(recipe_files()); }

std::string list_recipes() {
  std::string table;
  for (const auto& [name, path] : recipe_files()) table += fmt::format("{:<22} {}\n", name, read_recipe(path).about);
  return table;
}

std::vector<std::string> expand_recipe(std::vector<std::string> words, const ProblemOfOption& problem_of) {
  static const std::string kOption = "--recipe";
  for (size_t i = 0; i < words.size(); ++i) {
    std::string name;
    if (words[i] == kOption && i + 1 < words.size()) name = words[i + 1];
    if (words[i].rfind(kOption + "=", 0) == 0) name = words[i].substr(kOption.size() + 1);
    if (name.empty() || name == "list") continue;
    const Recipe recipe = find_recipe(name, problem_of);
    // At the front, behind the command's name: whatever a person typed comes later and so counts.
    words.insert(words.begin() + 1, recipe.arguments.begin(), recipe.arguments.end());
    break;
  }
  return words;
}

}  // namespace tutti
