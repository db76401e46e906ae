#include "record/fields.h"

#include <cmath>
#include <cstdlib>

#include "tutti/error.h"

namespace tutti {
namespace {

constexpr std::size_t kLongestShown = 60;

[[noreturn]] void refuse(JsonText& json, const std::string& key, const char* wanted) {
  const std::string_view value = json.skip();
  const std::string shown(value.substr(0, kLongestShown));
  throw Error("its \"{}\" is {}{}; it should be {}", key, shown, value.size() > shown.size() ? "…" : "", wanted);
}

bool is_null(JsonText& json) {
  if (json.next() != 'n') return false;
  json.skip();
  return true;
}

bool begins_number(char c) { return c == '-' || (c >= '0' && c <= '9'); }

}  // namespace

std::string text_at(JsonText& json, const std::string& key) {
  if (is_null(json)) return "";
  if (begins_number(json.next())) return std::string(json.skip());  // a cell named 7
  if (json.next() != '"') refuse(json, key, "a text");
  return json.text();
}

std::optional<double> number_at(JsonText& json, const std::string& key) {
  if (is_null(json)) return std::nullopt;
  if (begins_number(json.next())) return json.number();
  if (json.next() != '"') refuse(json, key, "a number");
  const std::string text = json.text();
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !std::isfinite(number))
    throw Error("its \"{}\" is '{}'; it should be a number", key, text.substr(0, kLongestShown));
  return number;
}

int64_t whole_at(JsonText& json, const std::string& key, int64_t if_absent) {
  const std::optional<double> number = number_at(json, key);
  if (!number) return if_absent;
  if (!(std::abs(*number) < 1e15)) throw Error("its \"{}\" is {:g}; it should be a whole number", key, *number);
  return static_cast<int64_t>(std::floor(*number));
}

bool flag_at(JsonText& json, const std::string& key) {
  if (is_null(json)) return false;
  if (json.next() != 't' && json.next() != 'f') refuse(json, key, "true or false");
  return json.flag();
}

std::vector<double> numbers_at(JsonText& json, const std::string& key) {
  std::vector<double> numbers;
  array_at(json, key, [&] {
    if (!begins_number(json.next())) refuse(json, key, "a list of numbers");
    numbers.push_back(json.number());
  });
  return numbers;
}

bool has_at(JsonText& json, const std::string& key, char bracket) {
  if (is_null(json)) return false;
  if (json.next() != bracket) refuse(json, key, bracket == '{' ? "an object" : "a list");
  return true;
}

}  // namespace tutti
