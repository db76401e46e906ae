#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "probe/facts.h"

namespace tutti {

/// What libtorch says of itself, of GPUs, and of a model unless its name is "". Throws UsageError for an unknown one.
using AskTorch = std::function<TorchFacts(const std::string& model)>;

/// `tutti check`. Without libtorch of its own, so that it can be tested so.
std::function<int()> add_check_command(CLI::App& program, AskTorch ask_torch);

}  // namespace tutti
