#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace tutti {

/// `tutti calibrate`. Returns what runs it.
std::function<int()> add_calibrate_command(CLI::App& program);

}  // namespace tutti
