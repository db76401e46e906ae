#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace tutti {

/// Adds `tutti cluster up|run|shape|cut|heal|pause|resume|kill|status|down`; the returned function runs it after
/// parsing and returns the exit code.
std::function<int()> add_cluster_command(CLI::App& program);

}  // namespace tutti
