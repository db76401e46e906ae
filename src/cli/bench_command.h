#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace tutti {

/// `tutti bench`: runs a sweep, a study of many training runs.
std::function<int()> add_bench_command(CLI::App& program);

}  // namespace tutti
