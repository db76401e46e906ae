#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace tutti {

/// Adds `tutti slurm`, which writes a job file for sbatch; the returned function runs it after parsing and returns the
/// exit code. Knows the other commands' options from `program`, which must outlive the function.
std::function<int()> add_slurm_command(CLI::App& program);

}  // namespace tutti
