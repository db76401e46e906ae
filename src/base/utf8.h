#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tutti {

/// Whether all bytes are UTF-8, as JSON wants text to be.
bool is_utf8(std::string_view text);

/// The text with U+FFFD in place of bytes that are not UTF-8.
std::string valid_utf8(std::string text);

/// Columns that a terminal needs for UTF-8 text: its characters, none of ours is wide.
std::size_t display_width(std::string_view text);

/// The text without control characters, which could change what a terminal shows: they become '?'. Line ends and tabs
/// stay.
std::string printable(std::string text);

}  // namespace tutti
