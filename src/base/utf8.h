#pragma once

#include <string>
#include <string_view>

namespace tutti {

/// Whether all bytes are UTF-8, as JSON wants text to be.
bool is_utf8(std::string_view text);

/// The text with U+FFFD in place of bytes that are not UTF-8.
std::string valid_utf8(std::string text);

}  // namespace tutti
