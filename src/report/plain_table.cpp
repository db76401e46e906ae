// Tables for a terminal, as programs such as `ps` and `ls` print them.
#include <algorithm>
#include <numeric>

#include "base/utf8.h"
#include "report/table.h"

namespace tutti {
namespace {

constexpr std::size_t kGap = 2;  // between columns

/// A column that has something to say.
struct PlainColumn {
  std::size_t index = 0;
  std::size_t width = 0;
};

std::vector<PlainColumn> plain_columns(const Table& table) {
  std::vector<PlainColumn> columns;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    std::size_t width = 0;
    for (const TableRow& row : table.rows) width = std::max(width, display_width(row.values[i].text));
    if (width > 0) columns.push_back({i, std::max(width, display_width(table.columns[i].label))});
  }
  return columns;
}

std::size_t width_of_all(const std::vector<PlainColumn>& columns) {
  return std::accumulate(columns.begin(), columns.end(), std::size_t{0},
                         [](std::size_t sum, const PlainColumn& column) { return sum + column.width + kGap; });
}

}  // namespace

std::string plain_text(const Table& table, std::size_t width, const std::vector<std::string>& dispensable) {
  std::vector<PlainColumn> columns = plain_columns(table);
  std::string left_out;
  for (const std::string& key : dispensable) {
    if (width == 0 || width_of_all(columns) <= width + kGap) break;
    const auto at = std::find_if(columns.begin(), columns.end(),
                                 [&](const PlainColumn& column) { return table.columns[column.index].key == key; });
    if (at == columns.end()) continue;
    left_out += (left_out.empty() ? "" : ", ") + table.columns[at->index].label;
    columns.erase(at);
  }
  std::string text;
  const auto add_row = [&](const auto& text_in) {
    std::string line;
    for (const PlainColumn& column : columns) {
      const std::string& cell = text_in(column.index);
      const std::string space(column.width - std::min(column.width, display_width(cell)), ' ');
      const bool is_right = table.columns[column.index].kind != "text";
      line += (line.empty() ? "" : std::string(kGap, ' ')) + (is_right ? space + cell : cell + space);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  };
  add_row([&](std::size_t i) -> const std::string& { return table.columns[i].label; });
  for (const TableRow& row : table.rows)
    add_row([&](std::size_t i) -> const std::string& { return row.values[i].text; });
  if (!left_out.empty()) text += "(too narrow for: " + left_out + ")\n";
  return text;
}

}  // namespace tutti
