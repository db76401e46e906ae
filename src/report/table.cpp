#include "report/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/utf8.h"
#include "tutti/error.h"

namespace tutti {
namespace {

using nlohmann::json;

std::string padded(const std::string& text, std::size_t width, bool is_right) {
  const std::string space(width - std::min(width, display_width(text)), ' ');
  return is_right ? space + text : text + space;
}

bool is_numeric(const TableColumn& column) { return column.kind != "text"; }

std::string shown(const TableValue& value) { return value.text.empty() ? "-" : value.text; }

/// A bar would end the cell, and a line break the row.
std::string for_markdown(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '|') result += '\\';
    result += c == '\n' || c == '\r' ? ' ' : c;
  }
  return result;
}

std::string for_csv(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string result = "\"";
  for (const char c : text) result += c == '"' ? std::string("\"\"") : std::string(1, c);
  return result + "\"";
}

bool has_deviations(const Table& table, std::size_t column) {
  return std::any_of(table.rows.begin(), table.rows.end(),
                     [column](const TableRow& row) { return row.values[column].deviation.has_value(); });
}

std::string full(double value) { return std::isfinite(value) ? fmt::format("{:.10g}", value) : ""; }

}  // namespace

std::size_t Table::column(const std::string& key) const {
  for (std::size_t i = 0; i < columns.size(); ++i)
    if (columns[i].key == key) return i;
  throw Error("table '{}' has no column '{}'", id, key);
}

TableValue text_value(std::string text) {
  text = printable(std::move(text));
  std::replace(text.begin(), text.end(), '\n', ' ');  // a row is a line
  return {std::move(text), std::nullopt, std::nullopt};
}

TableValue number_value(const std::optional<double>& value, int digits) {
  if (!value || !std::isfinite(*value)) return {};
  return {fmt::format("{:.{}f}", *value, digits), value, std::nullopt};
}

TableValue whole_value(int64_t value, int64_t unknown) {
  if (value == unknown) return {};
  return {fmt::format("{}", value), static_cast<double>(value), std::nullopt};
}

TableValue percent_value(const std::optional<double>& share) {
  if (!share || !std::isfinite(*share)) return {};
  return {fmt::format("{:.1f} %", *share * 100), share, std::nullopt};
}

TableValue plusminus_value(double mean, const std::optional<double>& deviation, int digits) {
  if (!deviation) return {fmt::format("{:.{}f}", mean, digits), mean, std::nullopt};
  return {fmt::format("{:.{}f} ± {:.{}f}", mean, digits, *deviation, digits), mean, deviation};
}

TableValue duration_value(double seconds) {
  if (!(seconds > 0)) return {};
  return {hours_minutes_seconds(seconds), seconds, std::nullopt};
}

std::string hours_minutes_seconds(double seconds) {
  if (seconds < 59.995) return fmt::format("0:00:{:05.2f}", seconds);
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string aligned_text(const Table& table, std::size_t most_rows) {
  std::vector<std::size_t> widths;
  const std::size_t rows = std::min(most_rows, table.rows.size());
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    widths.push_back(display_width(table.columns[i].label));
    for (std::size_t row = 0; row < rows; ++row)
      widths[i] = std::max(widths[i], display_width(shown(table.rows[row].values[i])));
  }
  std::string text = "## " + table.title + "\n\n", rule = "|";
  const auto end_line = [&text] { text += "\n"; };
  text += "|";
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    text += " " + padded(table.columns[i].label, widths[i], is_numeric(table.columns[i])) + " |";
    rule += std::string(widths[i] + 1, '-') + (is_numeric(table.columns[i]) ? ":|" : "-|");
  }
  end_line();
  text += rule;
  end_line();
  for (std::size_t row = 0; row < rows; ++row) {
    text += "|";
    for (std::size_t i = 0; i < table.columns.size(); ++i)
      text += " " + padded(shown(table.rows[row].values[i]), widths[i], is_numeric(table.columns[i])) + " |";
    end_line();
  }
  if (rows < table.rows.size())
    text += fmt::format("… and {} more rows; --md or -o has them\n", table.rows.size() - rows);
  if (!table.caption.empty()) text += "\n" + table.caption + "\n";
  return text;
}

std::string markdown(const Table& table) {
  std::string text = fmt::format("## {}\n\n|", table.title);
  for (const TableColumn& column : table.columns) text += " " + for_markdown(column.label) + " |";
  text += "\n|";
  for (const TableColumn& column : table.columns) text += is_numeric(column) ? "---:|" : "---|";
  text += "\n";
  for (const TableRow& row : table.rows) {
    text += "|";
    for (const TableValue& value : row.values) {
      const std::string part = for_markdown(shown(value));
      text += row.is_summary && part != "-" ? " **" + part + "** |" : " " + part + " |";
    }
    text += "\n";
  }
  if (!table.caption.empty()) text += "\n" + table.caption + "\n";
  return text;
}

std::string csv(const Table& table) {
  std::string text;
  std::vector<bool> deviates;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    deviates.push_back(has_deviations(table, i));
    text += (i == 0 ? "" : ",") + for_csv(table.columns[i].key);
    if (deviates[i]) text += "," + for_csv(table.columns[i].key + "_deviation");
  }
  text += "\n";
  for (const TableRow& row : table.rows) {
    for (std::size_t i = 0; i < row.values.size(); ++i) {
      const TableValue& value = row.values[i];
      text += (i == 0 ? "" : ",") + (value.value ? full(*value.value) : for_csv(value.text));
      if (deviates[i]) text += "," + (value.deviation ? full(*value.deviation) : "");
    }
    text += "\n";
  }
  return text;
}

json to_json(const Table& table) {
  json columns = json::array(), rows = json::array();
  for (const TableColumn& column : table.columns)
    columns.push_back({{"key", column.key}, {"label", column.label}, {"kind", column.kind}, {"digits", column.digits}});
  for (const TableRow& row : table.rows) {
    json entry = json::object();
    for (std::size_t i = 0; i < row.values.size(); ++i) {
      const TableValue& value = row.values[i];
      if (!value.value) {
        entry[table.columns[i].key] = value.text;
        continue;
      }
      json& cell = entry[table.columns[i].key] = {{"value", *value.value}, {"text", value.text}};
      if (value.deviation) cell["deviation"] = *value.deviation;
    }
    rows.push_back(std::move(entry));
  }
  return {{"id", table.id}, {"title", table.title}, {"caption", table.caption}, {"columns", columns}, {"rows", rows}};
}

}  // namespace tutti
