#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace tutti {

struct TableColumn {
  std::string key, label;
  std::string kind = "text";  // text, number, percent, duration or plusminus, as the page wants it
  int digits = 0;             // behind the point
};

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

/// Aligned columns for a terminal, `most_rows` of them; it says how many are left out.
std::string aligned_text(const Table& table, std::size_t most_rows);
/// The same without title, bars and empty columns. To come out `width` wide at most (0: any), columns are left out:
/// first those named first in `dispensable`.
std::string plain_text(const Table& table, std::size_t width = 0, const std::vector<std::string>& dispensable = {});
std::string markdown(const Table& table);
/// Numbers in full, a deviation in a column of its own.
std::string csv(const Table& table);
/// As a page document has it.
nlohmann::json to_json(const Table& table);

}  // namespace tutti
