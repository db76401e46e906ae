#pragma once

#include <string>
#include <vector>

namespace tutti {

/// A training run as a file: options of `tutti train` without their dashes, and a line that says what it is.
struct Recipe {
  std::string about;
  std::vector<std::string> arguments;  // "--batch=64"
};

/// Reads a recipe from YAML text. `options` are those that a recipe may set ("--batch"). An Error names `file` and
/// line.
Recipe parse_recipe(const std::string& text, const std::string& file, const std::vector<std::string>& options);

/// A recipe by the path of its file or by its name, which is looked for in ./recipes and in the source's recipes.
Recipe find_recipe(const std::string& name, const std::vector<std::string>& options);

/// All recipes with what they are about, as a table.
std::string list_recipes(const std::vector<std::string>& options);

/// Command-line words in which `--recipe NAME` is preceded by what that recipe says, so that words further on override
/// it.
std::vector<std::string> expand_recipe(std::vector<std::string> words, const std::vector<std::string>& options);

}  // namespace tutti
