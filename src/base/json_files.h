#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace tutti {

/// Deeper than anything of ours. Whatever walks through a JSON value calls itself for each level, and the stack is not
/// endless.
constexpr int kDeepestJson = 64;

/// JSON from a file that anybody may have written. `name` is that of the file. Throws Error naming it, the line and
/// what is wrong: no JSON, or nested more than kDeepestJson deep.
nlohmann::json parse_json(std::string_view text, const std::string& name);
nlohmann::json read_json_file(const std::filesystem::path& path);

}  // namespace tutti
