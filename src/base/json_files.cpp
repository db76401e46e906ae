#include "base/json_files.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "tutti/error.h"

namespace tutti {
namespace {

std::size_t line_of(std::string_view text, std::size_t at) {
  return 1 + static_cast<std::size_t>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
}

/// Where a bracket is opened inside too many others; npos where none is. What is no JSON is found out later.
std::size_t find_too_deep(std::string_view text) {
  int depth = 0;
  bool is_text = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (is_text) {
      if (c == '\\') ++i;
      if (c == '"') is_text = false;
    } else if (c == '"') {
      is_text = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kDeepestJson) return i;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return std::string_view::npos;
}

}  // namespace

nlohmann::json parse_json(std::string_view text, const std::string& name) {
  if (const std::size_t at = find_too_deep(text); at != std::string_view::npos)
    throw Error("{}, line {}: brackets are nested more than {} deep; nothing that Tutti writes is", name,
                line_of(text, at), kDeepestJson);
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& problem) {
    throw Error("{}, line {}: this is no JSON, the file is damaged or another one", name,
                line_of(text, std::min<std::size_t>(problem.byte, text.size())));
  } catch (const nlohmann::json::exception& problem) {
    throw Error("{}: {}", name, problem.what());  // a number that is too large
  }
}

nlohmann::json read_json_file(const std::filesystem::path& path) { return parse_json(read_file(path), path.string()); }

}  // namespace tutti
