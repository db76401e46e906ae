#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace tutti {

/// `tutti export`: trained weights for other programs.
std::function<int()> add_export_command(CLI::App& program);

}  // namespace tutti
