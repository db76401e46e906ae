#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace tutti {

/// `tutti models`: the models that can be trained, and what they ask for. Returns what runs it.
std::function<int()> add_models_command(CLI::App& program);

}  // namespace tutti
