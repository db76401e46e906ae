#include "report/import.h"

#include <fmt/format.h>

#include <set>

#include "base/files.h"
#include "published/figures_file.h"
#include "published/strategies_table.h"
#include "record/node_list.h"
#include "tutti/error.h"

namespace tutti {

std::vector<Cell> import_published(PublishedText& text) {
  std::vector<Cell> cells;
  if (has_figures(text))
    cells = import_figures(text);
  else if (has_strategies(text))
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
        "#GPUs | …'), lists of '- Step200: … data/sec', logs of 'Running with 2 GPUs', or figures in columns "
        "('model,batch,ranks,…')",
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

void place_on(Cell& cell, std::vector<NodeShare> nodes) {
  std::vector<std::string> hosts;
  std::string shares;
  for (const NodeShare& node : nodes) {
    hosts.push_back(node.name);
    shares += fmt::format("{}{}:{}", shares.empty() ? "" : ", ", node.name, node.ranks);
  }
  cell.config.nodes = static_cast<int>(nodes.size());
  cell.config.other = "on " + (nodes.size() == 1 ? hosts.front() : shares);
  cell.node_list = compress_node_list(hosts);
  cell.nodes = std::move(nodes);
}

void take_node_list(PublishedText& text, std::size_t line, const std::string& list, Cell& cell) {
  cell.stated.is_average = list == "Avg";
  if (cell.stated.is_average) return;
  cell.node_list = list;
  const auto hosts = expand_node_list(list);
  if (!hosts) {
    text.notes.push_back(fmt::format("{}, line {}: '{}' is no node list of Slurm's", text.name, line + 1, list));
  } else if (static_cast<int>(hosts->size()) != cell.config.nodes) {
    text.notes.push_back(fmt::format("{}, line {}: '{}' names {} nodes, the row says {}", text.name, line + 1, list,
                                     hosts->size(), cell.config.nodes));
  } else {
    for (const std::string& host : *hosts) cell.nodes.push_back({host, cell.config.ranks / cell.config.nodes, ""});
  }
}

void note_steps_named_twice(PublishedText& text, const Cell& cell) {
  std::set<int64_t> seen;
  for (const EpochTimes& epoch : cell.epochs)
    for (const RateAtStep& rate : epoch.rates)
      if (!seen.insert(rate.step).second)
        text.notes.push_back(fmt::format("{}: step {} is there twice; both rates are kept", cell.id, rate.step));
}

}  // namespace tutti
