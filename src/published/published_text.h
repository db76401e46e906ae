#pragma once

#include <string>
#include <vector>

namespace tutti {

/// A published text, taken apart into lines.
struct PublishedText {
  std::string name;                // of the file, for messages and as the sweep's name
  std::vector<std::string> lines;  // without line ends; those of HTML and images are empty
  std::vector<std::string> notes;  // what a reader should know of how it was read
};

PublishedText published_text(const std::string& name, const std::string& content);

// For those that read one.

/// Throws Error about a line, counted from 0.
[[noreturn]] void refuse_line(const PublishedText& text, std::size_t line, const std::string& why);
std::string trimmed(const std::string& text);
/// The cells of a Markdown row, trimmed, without the emphasis of "**"; none for a line that is no row.
std::vector<std::string> row_fields(const std::string& line);
/// "|---|:---|"
bool is_rule(const std::string& line);
/// Throws Error if a line that is no row comes right below one: prose stands apart from a table.
void check_is_prose(const PublishedText& text, std::size_t line);
double number_of(const PublishedText& text, std::size_t line, const std::string& field, const std::string& what);
int count_of(const PublishedText& text, std::size_t line, const std::string& field, const std::string& what);

}  // namespace tutti
