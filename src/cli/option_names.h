#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace tutti {

/// The long names of a command's options, with their dashes.
inline std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

}  // namespace tutti
