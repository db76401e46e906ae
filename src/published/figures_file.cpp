#include "published/figures_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/names.h"

namespace tutti {
namespace {

const std::vector<std::string>& known_columns() {
  static const std::vector<std::string> names = {
      // of a run
      "model", "data", "batch", "network", "strategy", "workers", "nodes", "ranks", "hosts", "gpu", "node_list",
      "samples_per_s", "deviation", "speedup", "epochs", "steps", "run_s",
      // of an epoch of it, and of a step or a rank of that
      "epoch", "step", "data_per_s", "rank", "train_s", "comm_s", "test_s", "test_accuracy"};
  return names;
}

/// The fields of a line; quotes keep commas, and two of them stand for one.
std::vector<std::string> fields_of(const PublishedText& text, std::size_t line) {
  std::vector<std::string> fields(1);
  bool is_quoted = false;
  const std::string& content = text.lines[line];
  for (std::size_t i = 0; i < content.size(); ++i) {
    if (content[i] == '"' && is_quoted && i + 1 < content.size() && content[i + 1] == '"')
      fields.back() += content[++i];
    else if (content[i] == '"')
      is_quoted = !is_quoted;
    else if (content[i] == ',' && !is_quoted)
      fields.emplace_back();
    else
      fields.back() += content[i];
  }
  if (is_quoted) refuse_line(text, line, "a quote is not closed");
  for (std::string& field : fields) field = trimmed(field);
  return fields;
}

bool is_comment(const std::string& line) { return line.empty() || line[0] == '#'; }

/// The line that names the columns, or the number of lines.
std::size_t header_line(const PublishedText& text) {
  const auto found = std::find_if_not(text.lines.begin(), text.lines.end(), is_comment);
  return static_cast<std::size_t>(found - text.lines.begin());
}

}  // namespace

std::string FiguresTable::at(const Row& row, const std::string& column) const {
  const auto found = std::find(columns.begin(), columns.end(), column);
  return found == columns.end() ? "" : row.fields[static_cast<std::size_t>(found - columns.begin())];
}

bool has_figures(const PublishedText& text, const std::vector<std::string>& columns) {
  const std::size_t header = header_line(text);
  if (header == text.lines.size()) return false;
  const std::string names = "," + text.lines[header] + ",";
  return std::all_of(columns.begin(), columns.end(),
                     [&](const std::string& column) { return names.find("," + column + ",") != std::string::npos; });
}

FiguresTable read_figures(PublishedText& text) {
  static const std::string source = "# Source: ";
  FiguresTable table;
  const std::size_t header = header_line(text);
  table.columns = fields_of(text, header);
  for (const std::string& column : table.columns)
    if (const auto& known = known_columns(); std::find(known.begin(), known.end(), column) == known.end())
      refuse_line(text, header, unknown_name("column", column, known));
  for (std::size_t i = 0; i < text.lines.size(); ++i) {
    const std::string& line = text.lines[i];
    if (line.rfind(source, 0) == 0)
      text.notes.push_back(fmt::format("{}: figures of {}", text.name, line.substr(source.size())));
    if (i <= header || is_comment(line)) continue;
    std::vector<std::string> fields = fields_of(text, i);
    if (fields.size() != table.columns.size())
      refuse_line(text, i, fmt::format("{} fields where the header has {}", fields.size(), table.columns.size()));
    table.rows.push_back({i, std::move(fields)});
  }
  return table;
}

}  // namespace tutti
