#pragma once

#include <CLI/CLI.hpp>
#include <vector>

#include "options/option_table.h"

namespace tutti {

/// Adds options of a table to a command: reading its command line sets their values.
void add_options(CLI::App& command, const std::vector<TrainOption>& options);

}  // namespace tutti
