#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace tutti {

/// `tutti watch`: a live page of training.
std::function<int()> add_watch_command(CLI::App& program);

}  // namespace tutti
