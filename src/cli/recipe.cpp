#include "cli/recipe.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/files.h"
#include "base/names.h"
#include "tutti/error.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

/// Recipes by name; those in ./recipes come before those of the source.
std::map<std::string, fs::path> recipe_files() {
  std::map<std::string, fs::path> files;
  for (const char* folder : {"recipes", TUTTI_RECIPES}) {
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
      if (entry->path().extension() == ".yaml") files.emplace(entry->path().stem().string(), entry->path());
    }
  }
  return files;
}

Recipe read_recipe(const fs::path& path) { return parse_recipe(read_file(path), path.string()); }

}  // namespace

Recipe find_recipe(const std::string& name) {
  std::error_code ignored;
  if (fs::is_regular_file(name, ignored)) return read_recipe(name);
  const std::map<std::string, fs::path> files = recipe_files();
  if (const auto found = files.find(name); found != files.end()) return read_recipe(found->second);
  std::vector<std::string> names;
  names.reserve(files.size());
  for (const auto& [known, path] : files) names.push_back(known);
  throw UsageError(unknown_name("recipe", name, names));
}

std::string list_recipes() {
  std::string table;
  for (const auto& [name, path] : recipe_files()) table += fmt::format("{:<22} {}\n", name, read_recipe(path).about);
  return table;
}

std::vector<std::string> expand_recipe(std::vector<std::string> words) {
  static const std::string kOption = "--recipe";
  for (size_t i = 0; i < words.size(); ++i) {
    std::string name;
    if (words[i] == kOption && i + 1 < words.size()) name = words[i + 1];
    if (words[i].rfind(kOption + "=", 0) == 0) name = words[i].substr(kOption.size() + 1);
    if (name.empty() || name == "list") continue;
    const Recipe recipe = find_recipe(name);
    // At the front, behind the command's name: whatever a person typed comes later and so counts.
    words.insert(words.begin() + 1, recipe.arguments.begin(), recipe.arguments.end());
    break;
  }
  return words;
}

}  // namespace tutti
