#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace tutti {

/// Adds `tutti run` to the program; the returned function runs it after parsing and returns the exit code.
std::function<int()> add_run_command(CLI::App& program);

}  // namespace tutti
