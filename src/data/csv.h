#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tutti {

/// A file of comma-separated values as spreadsheets and pandas write it (RFC 4180): a row of names, then rows of as
/// many fields. A field in double quotes may hold commas, line ends, and quotes written twice. Lines may end in CR LF,
/// and a byte order mark may come first. Empty lines are passed over.
class CsvReader {
 public:
  /// `name` is what an Error calls the file. Throws Error that names file and line for a row of names that is missing,
  /// holds one twice, an empty one, or something that is not UTF-8.
  CsvReader(std::string content, std::string name);

  const std::string& name() const { return name_; }
  const std::vector<std::string>& columns() const { return columns_; }
  /// Where the column stands. Throws UsageError that lists those there are.
  size_t column(const std::string& option, const std::string& wanted) const;

  /// The next row, or false at the end. Throws Error for another number of fields than names, a quote that is not
  /// closed or closed too early, and a NUL.
  bool next(std::vector<std::string>& fields);
  /// The line on which the row that next() gave begins, from 1.
  int64_t line() const { return row_line_; }

 private:
  bool read_row(std::vector<std::string>& fields);
  std::string read_quoted();

  const std::string content_;
  const std::string name_;
  std::vector<std::string> columns_;
  size_t at_ = 0;
  int64_t line_ = 1;
  int64_t row_line_ = 1;
};

/// A line of such a file, with its end.
std::string csv_line(const std::vector<std::string>& fields);

}  // namespace tutti
