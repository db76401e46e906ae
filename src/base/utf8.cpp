#include "base/utf8.h"

#include <algorithm>
#include <cstdint>

namespace tutti {
namespace {

/// How many bytes the character at `at` has; 0 where there is none.
std::size_t character_bytes(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(at);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xC2 && first < 0xE0 ? 2 : first >= 0xE0 && first < 0xF0 ? 3 : 4;
  if (first < 0xC2 || first > 0xF4 || text.size() - at < length) return 0;
  uint32_t code = first & (0x7FU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xC0U) != 0x80) return 0;
    code = code << 6 | (byte(at + i) & 0x3FU);
  }
  const bool is_too_long = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
  const bool is_half = code >= 0xD800 && code < 0xE000;
  return is_too_long || is_half || code > 0x10FFFF ? 0 : length;
}

}  // namespace

bool is_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = character_bytes(text, at);
    if (length == 0) return false;
    at += length;
  }
  return true;
}

std::string valid_utf8(std::string text) {
  if (is_utf8(text)) return text;
  std::string mended;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = character_bytes(text, at);
    if (length == 0)
      mended += "\xEF\xBF\xBD";
    else
      mended.append(text, at, length);
    at += length == 0 ? 1 : length;
  }
  return mended;
}

std::size_t display_width(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80; }));
}

std::string printable(std::string text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto code = static_cast<unsigned char>(text[i]);
    const bool is_control = (code < ' ' && code != '\n' && code != '\t') || code == 0x7F;
    // Those from 128 to 159, as terminals that know UTF-8 may still take them.
    const bool is_late_control = code == 0xC2 && i + 1 < text.size() &&
                                 static_cast<unsigned char>(text[i + 1]) >= 0x80 &&
                                 static_cast<unsigned char>(text[i + 1]) < 0xA0;
    if (is_late_control) text.erase(i + 1, 1);
    if (is_control || is_late_control) text[i] = '?';
  }
  return text;
}

}  // namespace tutti
