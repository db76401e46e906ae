#pragma once

#include <string>
#include <vector>

#include "options/option_table.h"

namespace tutti {

/// A training run as a file: options of `tutti train` without their dashes, and a line that says what it is.
struct Recipe {
  std::string about;
  std::vector<std::string> arguments;  // "--batch=64"
};

/// Reads a recipe from YAML text. An Error names `file` and line, also where `problem_of` finds one.
Recipe parse_recipe(const std::string& text, const std::string& file, const ProblemOfOption& problem_of = {});

/// A recipe by the path of its file or by its name, which is looked for in ./recipes and in the recipes that are
/// shipped.
Recipe find_recipe(const std::string& name, const ProblemOfOption& problem_of = {});

std::vector<std::string> recipe_names();

/// All recipes with what they are about, as a table.
std::string list_recipes();

/// Command-line words in which `--recipe NAME` is preceded by what that recipe says, so that words further on override
/// it.
std::vector<std::string> expand_recipe(std::vector<std::string> words, const ProblemOfOption& problem_of = {});

}  // namespace tutti
