#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace tutti {

/// Adds `tutti runs`; the returned function runs it and returns the exit code.
std::function<int()> add_runs_command(CLI::App& program);

}  // namespace tutti
