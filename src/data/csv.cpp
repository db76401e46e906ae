#include "data/csv.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/utf8.h"
#include "tutti/error.h"

namespace tutti {

CsvReader::CsvReader(std::string content, std::string name) : content_(std::move(content)), name_(std::move(name)) {
  if (content_.compare(0, 3, "\xef\xbb\xbf") == 0) at_ = 3;
  if (!read_row(columns_)) throw Error("{}: it is empty: a row of names comes first", name_);
  std::set<std::string> seen;
  for (const std::string& column : columns_) {
    if (!is_utf8(column)) throw Error("{}:{}: the name '{}' is not UTF-8", name_, row_line_, valid_utf8(column));
    if (column.empty()) throw Error("{}:{}: a column has no name", name_, row_line_);
    if (!seen.insert(column).second) throw Error("{}:{}: two columns are called '{}'", name_, row_line_, column);
  }
  if (columns_.size() == 1 && columns_[0].find_first_of(";\t") != std::string::npos)
    throw Error("{}:{}: one column only, '{}': fields are divided by commas, not by semicolons or tabs", name_,
                row_line_, columns_[0]);
}

size_t CsvReader::column(const std::string& option, const std::string& wanted) const {
  const auto found = std::find(columns_.begin(), columns_.end(), wanted);
  if (found == columns_.end())
    throw UsageError("{} '{}': {} has no such column; there are {}", option, wanted, name_, fmt::join(columns_, ", "));
  return static_cast<size_t>(found - columns_.begin());
}

bool CsvReader::next(std::vector<std::string>& fields) {
  if (!read_row(fields)) return false;
  if (fields.size() != columns_.size())
    throw Error("{}:{}: {} fields, but the first row names {} columns", name_, row_line_, fields.size(),
                columns_.size());
  return true;
}

bool CsvReader::read_row(std::vector<std::string>& fields) {
  fields.clear();
  while (at_ < content_.size() && (content_[at_] == '\n' || content_.compare(at_, 2, "\r\n") == 0)) {
    at_ += content_[at_] == '\n' ? 1 : 2;
    ++line_;
  }
  row_line_ = line_;
  if (at_ == content_.size()) return false;
  while (true) {
    if (at_ < content_.size() && content_[at_] == '"') {
      fields.push_back(read_quoted());
    } else {
      const size_t end = std::min(content_.find_first_of(",\n", at_), content_.size());
      std::string field = content_.substr(at_, end - at_);
      if (!field.empty() && field.back() == '\r' && (end == content_.size() || content_[end] == '\n')) field.pop_back();
      fields.push_back(std::move(field));
      at_ = end;
    }
    if (fields.back().find('\0') != std::string::npos) throw Error("{}:{}: a NUL byte: this is no text", name_, line_);
    if (at_ == content_.size()) return true;
    if (content_[at_++] == ',') continue;
    ++line_;  // at_ is behind its end
    return true;
  }
}

std::string CsvReader::read_quoted() {
  const int64_t opened = line_;
  std::string field;
  for (++at_;; ++at_) {
    if (at_ >= content_.size()) throw Error("{}:{}: a field's quote is never closed", name_, opened);
    const char c = content_[at_];
    if (c == '\n') ++line_;
    if (c == '"' && (at_ + 1 == content_.size() || content_[at_ + 1] != '"')) break;
    if (c == '"') ++at_;
    field += c;
  }
  ++at_;
  if (content_.compare(at_, 2, "\r\n") == 0 || (at_ + 1 == content_.size() && content_[at_] == '\r')) ++at_;
  if (at_ < content_.size() && content_[at_] != ',' && content_[at_] != '\n')
    throw Error("{}:{}: text behind a field's closing quote: a quote inside a field is written twice", name_, line_);
  return field;
}

std::string csv_line(const std::vector<std::string>& fields) {
  std::string line;
  for (const std::string& field : fields) {
    line += line.empty() ? "\"" : ",\"";
    for (const char c : field) line += c == '"' ? std::string("\"\"") : std::string(1, c);
    line += '"';
  }
  return line + "\n";
}

}  // namespace tutti
