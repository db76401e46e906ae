#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "base/names.h"
#include "sweep/progress.h"

namespace tutti::sweep {
namespace {

/// What a place of the table shows: all repeats of one configuration.
struct Entry {
  double rate_sum = 0;
  int done = 0;
  int failed = 0;
  bool is_running = false;

  std::string text() const {
    std::string shown = done > 0 ? fmt::format("{:.0f}", rate_sum / done) : failed > 0 ? "failed" : "";
    if (is_running) shown += shown.empty() ? ">>>" : " >";
    return shown.empty() ? "." : shown;
  }
};

struct Row {
  std::string name;
  std::map<std::string, Entry> entries;  // by column
};

/// The axes that vary, less the one that is compared: what names a row.
std::vector<std::string> row_axes(const SweepFolder& folder, const std::string& compare) {
  std::vector<std::string> axes;
  for (const std::string& axis : folder.plan().axis_order)
    if (axis != compare && folder.plan().axes.at(axis).size() > 1) axes.push_back(axis);
  return axes;
}

}  // namespace

std::string progress_table(const SweepFolder& folder, const std::string& running, int width, int height) {
  const std::string compare = folder.plan().compare;
  const std::vector<std::string> axes = row_axes(folder, compare);
  std::vector<Row> rows;
  std::vector<std::string> columns;
  int running_row = 0;
  for (const SweepCell& cell : folder.cells()) {
    const auto value = [&cell](const std::string& axis) {
      const auto found = cell.settings.find(axis);
      return found == cell.settings.end() ? std::string() : found->second;
    };
    std::string name;
    for (const std::string& axis : axes) {
      const std::string part = value(axis);
      if (part.empty()) continue;
      const bool is_number = part.find_first_not_of("0123456789.") == std::string::npos;
      name += fmt::format("{}{}{}", name.empty() ? "" : "  ", is_number ? axis + " " : "", part);
    }
    if (name.empty()) name = cell.is_baseline ? "baseline" : "";
    const std::string column = value(compare);
    if (!contains(columns, column)) columns.push_back(column);
    auto row = std::find_if(rows.begin(), rows.end(), [&](const Row& r) { return r.name == name; });
    if (row == rows.end()) row = rows.insert(rows.end(), {name, {}});
    Entry& entry = row->entries[column];
    const CellOutcome& outcome = folder.outcome(cell.id);
    if (outcome.state == CellState::done) {
      entry.rate_sum += outcome.samples_per_s;
      ++entry.done;
    }
    entry.failed += outcome.state == CellState::failed ? 1 : 0;
    if (cell.id == running) {
      entry.is_running = true;
      running_row = static_cast<int>(row - rows.begin());
    }
  }

  const std::string heading = "samples/s";
  std::size_t name_width = heading.size();
  for (const Row& row : rows) name_width = std::max(name_width, row.name.size());
  const auto line = [&](const std::string& name, const auto& text_of) {
    std::string text = fmt::format("{:<{}}", name, name_width);
    for (const std::string& column : columns)
      text += fmt::format("  {:>{}}", text_of(column), std::max<std::size_t>(8, column.size()));
    if (static_cast<int>(text.size()) > width) text.resize(static_cast<std::size_t>(std::max(0, width)));
    return text + "\n";
  };
  std::string table = line(heading, [](const std::string& column) { return column; });
  const int shown = std::max(1, std::min<int>(static_cast<int>(rows.size()), height - 1));
  const int first = std::clamp(running_row - shown / 2, 0, static_cast<int>(rows.size()) - shown);
  for (int i = first; i < first + shown; ++i) {
    const Row& row = rows[static_cast<std::size_t>(i)];
    table += line(row.name, [&](const std::string& column) {
      const auto entry = row.entries.find(column);
      return entry == row.entries.end() ? std::string() : entry->second.text();
    });
  }
  return table;
}

}  // namespace tutti::sweep
