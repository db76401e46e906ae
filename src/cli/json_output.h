#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json_fwd.hpp>

namespace tutti {

/// --json, which means the same in all commands: stdout is their facts as one JSON value, and nothing else.
void add_json_flag(CLI::App& command, bool& as_json);

/// Prints it to stdout. What names and errors say need not be UTF-8; JSON must be.
void print_json(const nlohmann::json& value);

}  // namespace tutti
