#include "report/html.h"

#include <nlohmann/json.hpp>

namespace tutti {
namespace {

using nlohmann::json;

/// Valid UTF-8; nlohmann's writer already knows how to mend it.
std::string valid_utf8(std::string_view text) {
  const std::string quoted = json(std::string(text)).dump(-1, ' ', false, json::error_handler_t::replace);
  return json::parse(quoted).get<std::string>();
}

bool is_ascii(std::string_view text) {
  for (const char c : text)
    if (static_cast<unsigned char>(c) >= 0x80) return false;
  return true;
}

}  // namespace

std::string escape_html(std::string_view text) {
  const std::string mended = is_ascii(text) ? std::string(text) : valid_utf8(text);
  std::string escaped;
  escaped.reserve(mended.size() + mended.size() / 8);
  for (const char c : mended) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        // Other control characters are errors in HTML, and nobody sees them.
        if (static_cast<unsigned char>(c) >= 0x20 || c == '\n' || c == '\t') escaped += c;
    }
  }
  return escaped;
}

std::string json_for_script(const json& value) {
  // Inside strings, the only place where these characters occur in JSON, the escapes mean the same. All the rest,
  // U+2028 too, is escaped by asking for ASCII.
  std::string safe;
  for (const char c : value.dump(-1, ' ', true, json::error_handler_t::replace)) {
    switch (c) {
      case '<':
        safe += "\\u003c";
        break;
      case '>':
        safe += "\\u003e";
        break;
      case '&':
        safe += "\\u0026";
        break;
      default:
        safe += c;
    }
  }
  return safe;
}

std::string slug(std::string_view text) {
  std::string name;
  for (const char c : text) {
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))
      name += c;
    else if (c >= 'A' && c <= 'Z')
      name += static_cast<char>(c - 'A' + 'a');
    else if (!name.empty() && name.back() != '-')
      name += '-';
  }
  while (!name.empty() && name.back() == '-') name.pop_back();
  return name;
}

}  // namespace tutti
