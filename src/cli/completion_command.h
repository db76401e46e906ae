#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace tutti {

/// Adds `tutti completion`; the returned function runs it and returns the exit code.
std::function<int()> add_completion_command(CLI::App& program);

}  // namespace tutti
