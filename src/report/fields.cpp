#include "report/fields.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "tutti/error.h"

namespace tutti {
namespace {

using nlohmann::json;

const json* find(const json& record, const char* key) {
  if (!record.is_object()) throw Error("where '{}' is looked for there is no object but {}", key, record.type_name());
  const auto found = record.find(key);
  return found == record.end() || found->is_null() ? nullptr : &*found;
}

[[noreturn]] void refuse(const char* key, const char* wanted, const json& value) {
  const std::string shown = value.dump();
  throw Error("its \"{}\" is {}; it should be {}", key, shown.size() > 60 ? value.type_name() : shown, wanted);
}

}  // namespace

std::string text_in(const json& record, const char* key) {
  const json* const value = find(record, key);
  if (value == nullptr) return "";
  if (value->is_number()) return value->dump();  // a cell named 7
  if (!value->is_string()) refuse(key, "a text", *value);
  return value->get<std::string>();
}

std::optional<double> number_in(const json& record, const char* key) {
  const json* const value = find(record, key);
  if (value == nullptr) return std::nullopt;
  if (value->is_number()) return value->get<double>();
  if (value->is_string()) {
    const auto& text = value->get_ref<const std::string&>();
    char* end = nullptr;
    const double number = std::strtod(text.c_str(), &end);
    if (!text.empty() && *end == '\0' && std::isfinite(number)) return number;
  }
  refuse(key, "a number", *value);
}

int64_t whole_in(const json& record, const char* key, int64_t if_absent) {
  const std::optional<double> number = number_in(record, key);
  if (!number) return if_absent;
  if (!(std::abs(*number) < 1e15)) refuse(key, "a whole number", record[key]);
  return static_cast<int64_t>(std::floor(*number));
}

bool flag_in(const json& record, const char* key) {
  const json* const value = find(record, key);
  if (value == nullptr) return false;
  if (!value->is_boolean()) refuse(key, "true or false", *value);
  return value->get<bool>();
}

std::vector<double> numbers_in(const json& record, const char* key) {
  std::vector<double> numbers;
  const json* const values = array_in(record, key);
  if (values == nullptr) return numbers;
  numbers.reserve(values->size());
  for (const json& value : *values) {
    if (!value.is_number()) refuse(key, "a list of numbers", *values);
    numbers.push_back(value.get<double>());
  }
  return numbers;
}

const json* object_in(const json& record, const char* key) {
  const json* const value = find(record, key);
  if (value != nullptr && !value->is_object()) refuse(key, "an object", *value);
  return value;
}

const json* array_in(const json& record, const char* key) {
  const json* const value = find(record, key);
  if (value != nullptr && !value->is_array()) refuse(key, "a list", *value);
  return value;
}

}  // namespace tutti
