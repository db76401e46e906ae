#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <regex>

#include "record/node_list.h"
#include "report/import.h"

namespace tutti {
namespace {

const std::vector<std::string>& column_names() {
  static const std::vector<std::string> names = {"#Nodes", "#GPUs",   "Epoch",   "Batchsize",
                                                 "Steps",  "Runtime", "Speedup", "Node(s)"};
  return names;
}

bool is_header(const std::vector<std::string>& fields) { return fields == column_names(); }

double seconds_in(const PublishedText& text, std::size_t line, const std::string& field) {
  static const std::regex clock("(\\d{1,5}):([0-5]\\d):([0-5]\\d(?:\\.\\d+)?)");
  std::smatch match;
  if (!std::regex_match(field, match, clock))
    refuse_line(text, line, fmt::format("'{}' is no run time in hours:minutes:seconds", field));
  return std::stod(match[1]) * 3600 + std::stod(match[2]) * 60 + std::stod(match[3]);
}

}  // namespace

bool has_nodes(const PublishedText& text) {
  return std::any_of(text.lines.begin(), text.lines.end(),
                     [](const std::string& line) { return is_header(row_fields(line)); });
}

std::vector<Cell> import_nodes(PublishedText& text) {
  std::vector<Cell> cells;
  std::string data;
  bool has_header = false;
  std::map<std::string, int> repeats;
  for (std::size_t i = 0; i < text.lines.size(); ++i) {
    const std::string& line = text.lines[i];
    if (line.empty() || is_rule(line)) continue;
    if (line[0] == '#') {
      const std::string heading = trimmed(line.substr(std::min(line.find_first_not_of('#'), line.size())));
      data = heading.substr(0, heading.find(' '));
      has_header = false;
      continue;
    }
    const std::vector<std::string> fields = row_fields(line);
    if (fields.empty()) {
      check_is_prose(text, i);
      continue;
    }
    if (is_header(fields)) {
      has_header = true;
      continue;
    }
    if (!has_header) refuse_line(text, i, "a row without a header above it");
    if (fields.size() != column_names().size())
      refuse_line(text, i, fmt::format("{} fields where the header has {}", fields.size(), column_names().size()));
    Cell cell = published_cell(text, i);
    cell.config.data = data;
    cell.config.nodes = count_of(text, i, fields[0], "number of nodes");
    const int per_node = count_of(text, i, fields[1], "number of GPUs");
    if (cell.config.nodes < 1 || per_node < 1 || cell.config.nodes > 100000 || per_node > 1000)
      refuse_line(text, i, "nothing runs on so few or so many nodes and GPUs");
    cell.config.ranks = cell.config.nodes * per_node;
    cell.stated.epochs = count_of(text, i, fields[2], "number of epochs");
    cell.config.batch = count_of(text, i, fields[3], "batch size");
    cell.steps = count_of(text, i, fields[4], "number of steps");
    cell.run_s = seconds_in(text, i, fields[5]);
    if (fields[6] != "-" && !fields[6].empty()) cell.stated.speedup = number_of(text, i, fields[6], "speed-up");
    cell.is_baseline = cell.config.ranks == 1;
    take_node_list(text, i, fields[7], cell);
    if (!cell.stated.is_average) cell.repeat = ++repeats[key_of(cell.config)];
    cells.push_back(std::move(cell));
  }
  return cells;
}

}  // namespace tutti
