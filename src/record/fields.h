#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "record/json_text.h"

namespace tutti {

// The value of a field, read from the text of a record. Null, JSON's word for a number that is none, counts as absent.
// A value of the wrong kind throws Error that names the field; the caller adds file and line.

std::string text_at(JsonText& json, const std::string& key);
/// Also of a text that is a number, as YAML readers like to leave them.
std::optional<double> number_at(JsonText& json, const std::string& key);
/// Rounded down.
int64_t whole_at(JsonText& json, const std::string& key, int64_t if_absent);
bool flag_at(JsonText& json, const std::string& key);
std::vector<double> numbers_at(JsonText& json, const std::string& key);

/// Whether an object (`bracket` is '{') or a list ('[') comes; false, and read over, for null.
bool has_at(JsonText& json, const std::string& key, char bracket);

template <typename Function>
void object_at(JsonText& json, const std::string& key, Function member) {
  if (has_at(json, key, '{')) json.object(member);
}
template <typename Function>
void array_at(JsonText& json, const std::string& key, Function element) {
  if (has_at(json, key, '[')) json.array(element);
}

}  // namespace tutti
