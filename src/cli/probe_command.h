#pragma once

#include <CLI/CLI.hpp>
#include <functional>

#include "cli/check_command.h"

namespace tutti {

/// `tutti probe`. Without libtorch of its own, so that it can be tested so.
std::function<int()> add_probe_command(CLI::App& program, AskTorch ask_torch);

}  // namespace tutti
