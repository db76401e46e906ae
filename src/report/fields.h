#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace tutti {

// Fields of a record, which may be absent (or null: JSON's word for a number that is none). One of the wrong kind
// throws Error that names it; the caller adds file and line.

std::string text_in(const nlohmann::json& record, const char* key);
/// Also of a text that is a number, as YAML readers like to leave them.
std::optional<double> number_in(const nlohmann::json& record, const char* key);
/// Rounded down; throws for what no count can be.
int64_t whole_in(const nlohmann::json& record, const char* key, int64_t if_absent);
bool flag_in(const nlohmann::json& record, const char* key);
std::vector<double> numbers_in(const nlohmann::json& record, const char* key);
/// nullptr if absent.
const nlohmann::json* object_in(const nlohmann::json& record, const char* key);
const nlohmann::json* array_in(const nlohmann::json& record, const char* key);

}  // namespace tutti
