// Stands in for recipe_yaml.cpp in a build without yaml-cpp.

#include "cli/recipe.h"
#include "tutti/error.h"

namespace tutti {

Recipe parse_recipe(const std::string&, const std::string& file, const ProblemOfOption&) {
  throw UsageError(
      "{}: this build cannot read recipes: yaml-cpp was not there when it was configured (Debian: libyaml-cpp-dev)",
      file);
}

}  // namespace tutti
