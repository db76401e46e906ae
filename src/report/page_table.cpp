#include "report/page_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "report/html.h"
#include "tutti/error.h"

namespace tutti {
namespace {

using nlohmann::json;

constexpr double kShortestBar = 0.01;  // of the longest; shorter ones look like dust

enum class Kind { text, number, percent, duration, plusminus };

struct Column {
  std::string key, label;
  Kind kind = Kind::text;
  std::optional<int> digits;
  bool has_bar = false;
  double largest = 0;    // of its values, for bars
  bool is_empty = true;  // no row has a value
};

const json kNothing;

const json& member(const json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() ? kNothing : *found;
}

std::string text_of(const json& value) {
  if (value.is_null()) return "";
  return value.is_string() ? value.get<std::string>() : value.dump();
}

Kind kind_of(const std::string& name, const std::string& table, const std::string& column) {
  if (name.empty() || name == "text") return Kind::text;
  if (name == "number") return Kind::number;
  if (name == "percent") return Kind::percent;
  if (name == "duration") return Kind::duration;
  if (name == "plusminus") return Kind::plusminus;
  throw Error(
      "page document: column '{}' of table '{}' is of kind '{}'; known: text, number, percent, duration, plusminus",
      column, table, name);
}

/// What a cell says, whichever of its forms it has.
struct PageCell {
  std::optional<double> value, deviation;
  std::string text, label;
  bool is_best = false;
};

std::optional<double> finite(const json& value) {
  if (!value.is_number()) return std::nullopt;
  const auto number = value.get<double>();
  return std::isfinite(number) ? std::optional<double>(number) : std::nullopt;
}

PageCell cell_of(const json& row, const Column& column) {
  const json& entry = row.is_object() ? member(row, column.key.c_str()) : kNothing;
  PageCell cell;
  if (!entry.is_object()) {
    cell.value = finite(entry);
    if (!entry.is_number()) cell.text = text_of(entry);
    return cell;
  }
  const json& value = member(entry, "value");
  cell.value = finite(value);
  cell.deviation = finite(member(entry, "deviation"));
  cell.text = text_of(member(entry, "text"));
  if (cell.text.empty() && !value.is_number()) cell.text = text_of(value);
  cell.label = text_of(member(entry, "label"));
  cell.is_best = member(entry, "best") == true;
  return cell;
}

std::string number(double value, std::optional<int> digits) {
  if (digits) return fmt::format("{:.{}f}", value, std::clamp(*digits, 0, 12));
  if (value == std::floor(value) && std::abs(value) < 1e15) return fmt::format("{:.0f}", value);
  return fmt::format("{:.4g}", value);
}

std::string duration(double seconds, std::optional<int> digits) {
  const double size = std::abs(seconds);
  if (size >= 60) {
    const auto whole = static_cast<long long>(std::llround(size));
    return fmt::format("{}{}:{:02}:{:02}", seconds < 0 ? "-" : "", whole / 3600, whole / 60 % 60, whole % 60);
  }
  const auto scaled = [&](double factor, const char* unit) {
    const double value = seconds * factor;
    if (digits) return fmt::format("{:.{}f} {}", value, std::clamp(*digits, 0, 12), unit);
    return fmt::format("{:.{}f} {}", value, std::abs(value) >= 100 ? 0 : std::abs(value) >= 10 ? 1 : 2, unit);
  };
  if (size == 0) return "0 s";
  if (size >= 1) return scaled(1, "s");
  return size >= 1e-3 ? scaled(1e3, "ms") : scaled(1e6, "µs");
}

std::string shown(const Column& column, double value) {
  switch (column.kind) {
    case Kind::percent:
      return fmt::format("{:.{}f} %", 100 * value, std::clamp(column.digits.value_or(1), 0, 12));
    case Kind::duration:
      return duration(value, column.digits);
    case Kind::plusminus:
      return number(value, column.digits.value_or(1));
    case Kind::text:
    case Kind::number:
      break;
  }
  return number(value, column.digits);
}

std::string tag(const std::string& label) {
  return fmt::format("<span class=\"tag tag-{}\">{}</span>", slug(label), escape_html(label));
}

std::string render_cell(const Column& column, const PageCell& cell) {
  std::string classes = column.kind == Kind::text ? "" : "number";
  std::string attributes, content;
  if (!cell.text.empty())
    content = column.key == "source" ? tag(cell.text) : escape_html(cell.text);
  else if (cell.value)
    content = escape_html(shown(column, *cell.value));
  if (content.empty()) content = "<span class=\"none\">–</span>";
  if (cell.value) {
    attributes += fmt::format(" data-value=\"{}\"", *cell.value);
    if (cell.text.empty() && cell.deviation)
      content += fmt::format(" <span class=\"deviation\">± {}</span>",
                             column.kind == Kind::plusminus ? number(*cell.deviation, column.digits.value_or(1))
                                                            : shown(column, *cell.deviation));
    if (column.has_bar && column.largest > 0 && *cell.value >= column.largest * kShortestBar) {
      classes += " with-bar";
      attributes += fmt::format(" style=\"--share:{:.1f}\"", std::min(100.0, 100 * *cell.value / column.largest));
    }
  }
  if (cell.is_best) classes += " best";
  if (!cell.label.empty()) content += " " + tag(cell.label);
  if (!classes.empty()) attributes += fmt::format(" class=\"{}\"", classes);
  return fmt::format("<td{}>{}</td>", attributes, content);
}

std::vector<Column> columns_of(const json& table, const std::string& title) {
  const json& listed = member(table, "columns");
  if (!listed.is_array()) throw Error("page document: table '{}' has no list of columns", title);
  std::vector<Column> columns;
  for (const json& entry : listed) {
    if (!entry.is_object() || !member(entry, "key").is_string())
      throw Error("page document: column {} of table '{}' has no key", columns.size() + 1, title);
    Column column;
    column.key = entry.at("key");
    column.label = entry.contains("label") ? text_of(entry.at("label")) : column.key;
    column.kind = kind_of(text_of(member(entry, "kind")), title, column.key);
    if (member(entry, "digits").is_number_integer()) column.digits = entry.at("digits").get<int>();
    const json& bar = member(entry, "bar");
    column.has_bar =
        bar.is_boolean() ? bar.get<bool>() : column.kind == Kind::percent || column.kind == Kind::plusminus;
    columns.push_back(std::move(column));
  }
  return columns;
}

}  // namespace

std::string render_table(const json& table, const std::string& id) {
  if (!table.is_object()) throw Error("page document: a table is not an object");
  const std::string title = text_of(member(table, "title")), caption = text_of(member(table, "caption"));
  std::vector<Column> columns = columns_of(table, title);
  const json& rows = member(table, "rows");
  if (!rows.is_array() && !rows.is_null()) throw Error("page document: the rows of table '{}' are not a list", title);
  for (Column& column : columns) {
    column.largest = column.kind == Kind::percent ? 1 : 0;
    for (const json& row : rows) {
      const PageCell cell = cell_of(row, column);
      column.largest = std::max(column.largest, cell.value.value_or(0));
      column.is_empty = column.is_empty && !cell.value && cell.text.empty() && cell.label.empty();
    }
  }
  // A sweep states only some of what a study may vary; columns of dashes would hide the rest.
  if (!rows.empty())
    columns.erase(std::remove_if(columns.begin(), columns.end(), [](const Column& column) { return column.is_empty; }),
                  columns.end());

  std::string html =
      fmt::format("<section class=\"card\" id=\"{0}\">\n<h3 id=\"{0}-title\">{1}</h3>\n", id, escape_html(title));
  if (!caption.empty()) html += fmt::format("<p class=\"caption\">{}</p>\n", escape_html(caption));
  html += fmt::format(
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-labelledby=\"{}-title\"><table "
      "data-name=\"{}\">\n<thead><tr>",
      id, escape_html(title));
  for (const Column& column : columns)
    html += fmt::format("<th scope=\"col\"{}>{}</th>", column.kind == Kind::text ? "" : " class=\"number\"",
                        escape_html(column.label));
  html += "</tr></thead>\n<tbody>\n";
  for (const json& row : rows) {
    html += "<tr>";
    for (const Column& column : columns) html += render_cell(column, cell_of(row, column));
    html += "</tr>\n";
  }
  if (rows.empty()) html += fmt::format("<tr class=\"empty\"><td colspan=\"{}\">No rows.</td></tr>\n", columns.size());
  return html + "</tbody></table></div>\n</section>\n";
}

}  // namespace tutti
