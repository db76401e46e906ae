#include "report/import.h"

#include <fmt/format.h>

#include "base/files.h"
#include "published/strategies_table.h"
#include "tutti/error.h"

namespace tutti {

std::vector<Cell> import_published(PublishedText& text) {
  std::vector<Cell> cells;
  if (has_strategies(text))
    cells = import_strategies(text);
  else if (has_nodes(text))
    cells = import_nodes(text);
  else if (has_step_rates(text))
    cells = import_step_rates(text);
  else if (has_rank_times(text))
    cells = import_rank_times(text);
  else
    throw Error(
        "{} has none of the forms that can be read: tables by strategy ('| DNN | BS | …') or by nodes ('| #Nodes | "
        "#GPUs | …'), lists of '- Step200: … data/sec', or logs of 'Running with 2 GPUs'",
        text.name);
  if (cells.empty()) throw Error("{} has a known form but no results", text.name);
  return cells;
}

std::vector<Cell> import_published(const std::filesystem::path& file, std::vector<std::string>& notes) {
  PublishedText text = published_text(file.filename().string(), read_file(file));
  std::vector<Cell> cells = import_published(text);
  notes.insert(notes.end(), text.notes.begin(), text.notes.end());
  return cells;
}

Cell published_cell(const PublishedText& text, std::size_t line) {
  Cell cell;
  cell.source = Source::published;
  cell.sweep = text.name;
  cell.id = fmt::format("{}:{}", text.name, line + 1);
  cell.config.device = "gpu";
  return cell;
}

}  // namespace tutti
