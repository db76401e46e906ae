#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "launch/launcher.h"

namespace tutti {

/// Adds `tutti train` to the program; the returned function runs it after parsing and returns the exit code.
/// `run_here` is what ranks of this machine do in copies of this process; null: they execute the program anew.
std::function<int()> add_train_command(CLI::App& program, RunHere run_here);

/// What is wrong with a value that a recipe or a sweep gives to one of its options: see ProblemOfOption.
std::string problem_of_train_option(const std::string& name, const std::string& value);

}  // namespace tutti
