#include "published/published_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <sstream>

#include "tutti/error.h"

namespace tutti {
namespace {

// Longer ones are not of these texts, and regular expressions take a stack frame per character.
constexpr std::size_t kLongestLine = 2000;
constexpr double kLargestCount = 1e9;

/// A line of HTML ("<div …>", "<img …>") or a Markdown image: how the text looks, and not what it says.
bool is_layout(const std::string& line) { return line.rfind('<', 0) == 0 || line.rfind("![", 0) == 0; }

}  // namespace

PublishedText published_text(const std::string& name, const std::string& content) {
  PublishedText text;
  text.name = name;
  std::istringstream stream(content);
  for (std::string line; std::getline(stream, line);) {
    text.lines.push_back(trimmed(line));
    if (line.size() > kLongestLine) refuse_line(text, text.lines.size() - 1, "it is too long");
    if (is_layout(text.lines.back())) text.lines.back().clear();
  }
  return text;
}

void refuse_line(const PublishedText& text, std::size_t line, const std::string& why) {
  std::string shown = line < text.lines.size() ? text.lines[line] : "";
  if (shown.size() > 60) shown = shown.substr(0, 60) + "…";
  throw Error("{}, line {}: {}: {}", text.name, line + 1, why, shown);
}

std::string trimmed(const std::string& text) {
  const auto is_space = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; };
  const auto begin = std::find_if_not(text.begin(), text.end(), is_space);
  const auto end = std::find_if_not(text.rbegin(), std::make_reverse_iterator(begin), is_space).base();
  return {begin, end};
}

std::vector<std::string> row_fields(const std::string& line) {
  std::vector<std::string> fields;
  if (line.size() < 2 || line[0] != '|') return fields;
  for (std::size_t begin = 1; begin < line.size();) {
    const std::size_t end = std::min(line.find('|', begin), line.size());
    std::string field = trimmed(line.substr(begin, end - begin));
    if (field.size() >= 4 && field.rfind("**", 0) == 0 && field.compare(field.size() - 2, 2, "**") == 0)
      field = trimmed(field.substr(2, field.size() - 4));
    begin = end + 1;
    if (begin < line.size() || end < line.size() || !field.empty()) fields.push_back(std::move(field));
  }
  return fields;
}

bool is_rule(const std::string& line) {
  return !line.empty() && line[0] == '|' && line.find_first_not_of("|-: ") == std::string::npos;
}

void check_is_prose(const PublishedText& text, std::size_t line) {
  if (line > 0 && !row_fields(text.lines[line - 1]).empty()) refuse_line(text, line, "this is no row of a table");
}

double number_of(const PublishedText& text, std::size_t line, const std::string& field, const std::string& what) {
  char* end = nullptr;
  const double number = std::strtod(field.c_str(), &end);
  if (field.empty() || *end != '\0' || !std::isfinite(number) || number < 0)
    refuse_line(text, line, fmt::format("'{}' is no {}", field, what));
  return number;
}

int count_of(const PublishedText& text, std::size_t line, const std::string& field, const std::string& what) {
  const double number = number_of(text, line, field, what);
  if (number > kLargestCount || number != std::floor(number))
    refuse_line(text, line, fmt::format("'{}' is no {}", field, what));
  return static_cast<int>(number);
}

}  // namespace tutti
