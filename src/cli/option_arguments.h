#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "options/option_table.h"

namespace tutti {

/// Adds options of a table to a command: reading its command line sets their values.
void add_options(CLI::App& command, const std::vector<TrainOption>& options);

/// What is wrong with this value of an option of `tutti train`, as its command line would say it; "": nothing. See
/// ProblemOfOption.
std::string problem_of_value(const std::string& name, const std::string& value, const KnownNames& names);

}  // namespace tutti
