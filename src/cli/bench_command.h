#pragma once

#include <CLI/CLI.hpp>
#include <functional>

#include "options/option_table.h"

namespace tutti {

/// `tutti bench`: runs a sweep, a study of many training runs.
/// `problem_of` looks at the values that a sweep gives to options of `tutti train`.
std::function<int()> add_bench_command(CLI::App& program, const ProblemOfOption& problem_of = {});

}  // namespace tutti
