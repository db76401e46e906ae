#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace tutti {

/// `tutti status`: what a run's ranks are doing.
std::function<int()> add_status_command(CLI::App& program);

}  // namespace tutti
