#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace tutti {

/// Adds `tutti data list|verify|get`; the returned function runs it after parsing and returns the exit code.
std::function<int()> add_data_command(CLI::App& program);

}  // namespace tutti
