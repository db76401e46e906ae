#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace tutti {

/// What a column is to its reader.
enum class ColumnRole {
  setting,  // tells rows apart
  answer,   // what the table is looked at for: always shown
  detail
};

struct TableColumn {
  std::string key, label;
  std::string kind = "text";  // text, number, percent, duration or plusminus, as the page wants it
  int digits = 0;             // behind the point
  ColumnRole role = ColumnRole::detail;
};

inline TableColumn as_setting(TableColumn column) {
  column.role = ColumnRole::setting;
  return column;
}
inline TableColumn as_answer(TableColumn column) {
  column.role = ColumnRole::answer;
  return column;
}

struct TableValue {
  std::string text;             // as a person reads it; "" for nothing
  std::optional<double> value;  // in seconds, a share of 1, …
  std::optional<double> deviation;
};

struct TableRow {
  std::vector<TableValue> values;  // one per column
  bool is_summary = false;         // of rows above it
};

struct Table {
  std::string id, title, caption;
  std::vector<TableColumn> columns;
  std::vector<TableRow> rows;

  /// Asked before a row per run or rank is made: of a very large sweep they would fill the memory and no eye, so
  /// further ones are only counted.
  bool has_room() {
    if (rows.size() < kMostRows) return true;
    ++left_out;
    return false;
  }

  static constexpr std::size_t kMostRows = 20000;
  std::size_t left_out = 0;

  std::size_t column(const std::string& key) const;  // throws Error where there is none
};

TableValue text_value(std::string text);
TableValue number_value(const std::optional<double>& value, int digits);
TableValue whole_value(int64_t value, int64_t unknown);
TableValue percent_value(const std::optional<double>& share);  // of 1
TableValue plusminus_value(double mean, const std::optional<double>& deviation, int digits);
TableValue duration_value(double seconds);

/// "14:36:52"; below a minute with hundredths.
std::string hours_minutes_seconds(double seconds);

/// The table as people read it: settings, then answers, then details. A column that says the same in all rows is a part
/// of the caption, as are the settings of a single row, and one that says nothing is left out. Answers stay columns.
Table for_people(Table table);

/// Aligned columns for a terminal, `most_rows` rows. It says how many rows are left out, and which columns, where lines
/// would be longer than `width` (0: any length); answers go last.
std::string aligned_text(const Table& table, std::size_t most_rows, std::size_t width = 0);
/// Columns without title, bars and empty columns. To come out `width` wide at most (0: any), columns are left out:
/// first those named first in `dispensable`.
std::string plain_text(const Table& table, std::size_t width = 0, const std::vector<std::string>& dispensable = {});
/// The first characters of a text that needs more columns than this.
std::string cut_text(const std::string& text, std::size_t columns);
/// Words in lines of at most `width` columns (0: one line).
std::string wrapped(const std::string& text, std::size_t width);
std::string markdown(const Table& table);
/// Numbers in full, a deviation in a column of its own.
std::string csv(const Table& table);
/// As a page document has it.
nlohmann::json to_json(const Table& table);

}  // namespace tutti
