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

/// Columns of text that are cut to this where a terminal is too narrow.
constexpr std::size_t kNarrowText = 24;

/// Which columns a line of `width` has room for: answers, then the others from the left.
std::vector<bool> columns_that_fit(const Table& table, const std::vector<std::size_t>& widths, std::size_t width) {
  std::vector<bool> fits(widths.size(), width == 0);
  std::size_t used = 1;
  for (const bool wants_answers : {true, false})
    for (std::size_t i = 0; width != 0 && i < widths.size(); ++i) {
      const bool is_wanted = (table.columns[i].role == ColumnRole::answer) == wants_answers;
      if (!is_wanted || used + widths[i] + 3 > width) continue;
      fits[i] = true;
      used += widths[i] + 3;
    }
  // A terminal that has room for nothing shows the first all the same.
  if (!fits.empty() && std::none_of(fits.begin(), fits.end(), [](bool fit) { return fit; })) fits[0] = true;
  return fits;
}

bool says_the_same(const Table& table, std::size_t column) {
  return std::all_of(table.rows.begin(), table.rows.end(), [&](const TableRow& row) {
    return row.values[column].text == table.rows.front().values[column].text;
  });
}

std::string full(double value) { return std::isfinite(value) ? fmt::format("{:.10g}", value) : ""; }

}  // namespace

std::string cut_text(const std::string& text, std::size_t columns) {
  if (display_width(text) <= columns) return text;
  std::string result;
  std::size_t taken = 0;
  for (const char c : text) {
    const bool begins_character = (static_cast<unsigned char>(c) & 0xC0) != 0x80;
    if (begins_character && ++taken >= columns) break;
    result += c;
  }
  return result + "…";
}

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

Table for_people(Table table) {
  if (table.rows.empty()) return table;
  const bool has_answers = std::any_of(table.columns.begin(), table.columns.end(),
                                       [](const TableColumn& column) { return column.role == ColumnRole::answer; });
  std::vector<std::size_t> order;
  std::string same;
  for (const ColumnRole role : {ColumnRole::setting, ColumnRole::answer, ColumnRole::detail})
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
      if (table.columns[i].role != role) continue;
      const std::string& first = table.rows.front().values[i].text;
      const bool is_same = says_the_same(table, i);
      if (is_same && first.empty()) continue;
      const std::string& key = table.columns[i].key;
      const bool is_name = key == "run" || key == "cell" || key == "differs";
      const bool is_hoisted =
          table.rows.size() > 1 ? role != ColumnRole::answer : role == ColumnRole::setting && has_answers && !is_name;
      if (is_same && is_hoisted)
        same += fmt::format("{}{} {}", same.empty() ? "" : ", ", table.columns[i].label, first);
      else
        order.push_back(i);
    }
  if (order.empty()) return table;  // rows that are alike in everything
  Table result = table;
  result.columns.clear();
  for (const std::size_t i : order) result.columns.push_back(table.columns[i]);
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    result.rows[row].values.clear();
    for (const std::size_t i : order) result.rows[row].values.push_back(std::move(table.rows[row].values[i]));
  }
  if (!same.empty())
    result.caption = fmt::format("{}: {}.{}{}", table.rows.size() > 1 ? "The same in all rows" : "Settings", same,
                                 table.caption.empty() ? "" : " ", table.caption);
  return result;
}

std::string wrapped(const std::string& text, std::size_t width) {
  std::string result, line;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    if (width != 0 && !line.empty() && display_width(line) + 1 + display_width(word) > width) {
      result += line + "\n";
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
    begin = end + 1;
  }
  return result + line;
}

std::string aligned_text(const Table& table, std::size_t most_rows, std::size_t width) {
  const std::size_t rows = std::min(most_rows, table.rows.size());
  std::vector<std::size_t> widths;
  const auto measure = [&](std::size_t longest) {
    widths.clear();
    std::size_t all = 1;
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
      widths.push_back(display_width(table.columns[i].label));
      for (std::size_t row = 0; row < rows; ++row) {
        const std::size_t size = display_width(shown(table.rows[row].values[i]));
        widths[i] = std::max(widths[i], is_numeric(table.columns[i]) ? size : std::min(size, longest));
      }
      all += widths[i] + 3;
    }
    return all;
  };
  if (const std::size_t all = measure(std::string::npos); width != 0 && all > width) measure(kNarrowText);
  const std::vector<bool> fits = columns_that_fit(table, widths, width);
  const auto cell = [&](const std::string& text, std::size_t i) {
    return " " + padded(cut_text(text, widths[i]), widths[i], is_numeric(table.columns[i])) + " |";
  };
  std::string text = "## " + table.title + "\n\n", head = "|", rule = "|", left_out;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    if (!fits[i]) {
      left_out += (left_out.empty() ? "" : ", ") + table.columns[i].label;
      continue;
    }
    head += cell(table.columns[i].label, i);
    rule += std::string(widths[i] + 1, '-') + (is_numeric(table.columns[i]) ? ":|" : "-|");
  }
  text += head + "\n" + rule + "\n";
  for (std::size_t row = 0; row < rows; ++row) {
    text += "|";
    for (std::size_t i = 0; i < table.columns.size(); ++i)
      if (fits[i]) text += cell(shown(table.rows[row].values[i]), i);
    text += "\n";
  }
  if (rows < table.rows.size())
    text += fmt::format("… and {} more rows; --md or -o has them\n", table.rows.size() - rows);
  if (!left_out.empty())
    text +=
        wrapped(fmt::format("… and more columns: {}; a wider terminal, --md or -o has them", left_out), width) + "\n";
  if (!table.caption.empty()) text += "\n" + wrapped(table.caption, width) + "\n";
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
