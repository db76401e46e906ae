#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace tutti {

/// `tutti eval`: trained weights on the test side of their data, or of another.
std::function<int()> add_eval_command(CLI::App& program);

}  // namespace tutti
