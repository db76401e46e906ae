#include "cli/json_output.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace tutti {

void add_json_flag(CLI::App& command, bool& as_json) {
  command.add_flag("--json", as_json, "print JSON, and nothing else, on stdout");
}

void print_json(const nlohmann::json& value) {
  fmt::print("{}\n", value.dump(1, ' ', /*ensure_ascii=*/false, nlohmann::json::error_handler_t::replace));
}

}  // namespace tutti
