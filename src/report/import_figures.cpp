#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "published/figures_file.h"
#include "report/import.h"

namespace tutti {
namespace {

/// Whether a column is of an epoch, a step or a rank, and not of a whole run.
bool is_of_a_part(const std::string& column) {
  static const std::set<std::string> columns = {"epoch",   "step",   "data_per_s", "rank",
                                                "train_s", "comm_s", "test_s",     "test_accuracy"};
  return columns.count(column) > 0;
}

/// A row of figures, read column by column.
class FigureRow {
 public:
  FigureRow(const PublishedText& text, const FiguresTable& table, const FiguresTable::Row& row)
      : text_(text), table_(table), row_(row) {}

  std::size_t line() const { return row_.line; }
  std::string words(const char* column) const { return table_.at(row_, column); }
  bool has(const char* column) const { return !words(column).empty(); }
  std::optional<double> number(const char* column) const {
    if (!has(column)) return std::nullopt;
    return number_of(text_, row_.line, words(column), column);
  }
  int count(const char* column, int if_absent) const {
    return has(column) ? count_of(text_, row_.line, words(column), column) : if_absent;
  }
  /// "lm1:2 lm6:1": how many ranks each has.
  std::vector<NodeShare> hosts() const {
    std::vector<NodeShare> nodes;
    std::istringstream shares(words("hosts"));
    for (std::string share; shares >> share;) {
      const std::size_t colon = std::min(share.find(':'), share.size());
      const std::string ranks = colon == share.size() ? "" : share.substr(colon + 1);
      nodes.push_back(
          {share.substr(0, colon), count_of(text_, row_.line, ranks, "number of ranks of a host"), words("gpu")});
    }
    return nodes;
  }

 private:
  const PublishedText& text_;
  const FiguresTable& table_;
  const FiguresTable::Row& row_;
};

/// What the columns of a run say.
Cell begin_cell(PublishedText& text, const FigureRow& figures) {
  Cell cell = published_cell(text, figures.line());
  cell.config.model = figures.words("model");
  cell.config.data = figures.words("data");
  cell.config.batch = figures.count("batch", 0);
  cell.config.network = figures.words("network");
  cell.config.strategy = figures.words("strategy");
  cell.config.workers = figures.count("workers", -1);
  cell.config.nodes = figures.count("nodes", 0);
  cell.config.ranks = figures.count("ranks", 0);
  if (cell.config.ranks < 1 || cell.config.ranks > kMostPublishedRanks || cell.config.nodes > cell.config.ranks)
    refuse_line(text, figures.line(), "nothing runs on so few or so many ranks and nodes");
  cell.is_baseline = cell.config.ranks == 1;
  if (const auto rate = figures.number("samples_per_s")) cell.throughput = {*rate, figures.number("deviation")};
  cell.stated.speedup = figures.number("speedup");
  if (figures.has("epochs")) cell.stated.epochs = figures.count("epochs", 0);
  cell.steps = figures.count("steps", 0);
  cell.run_s = figures.number("run_s").value_or(0);
  if (std::vector<NodeShare> hosts = figures.hosts(); !hosts.empty()) place_on(cell, std::move(hosts));
  if (figures.has("node_list")) take_node_list(text, figures.line(), figures.words("node_list"), cell);
  return cell;
}

/// What the columns of an epoch say: of all of it, of one rank, or of its steps up to one.
void add_epoch(const FigureRow& figures, Cell& cell) {
  const int number = figures.count("epoch", 0);
  if (cell.epochs.empty() || cell.epochs.back().epoch != number) {
    cell.epochs.emplace_back();
    cell.epochs.back().epoch = number;
  }
  EpochTimes& epoch = cell.epochs.back();
  const std::optional<double> train_s = figures.number("train_s");
  if (figures.has("step")) {
    epoch.rates.push_back({figures.count("step", 0), figures.number("data_per_s").value_or(0)});
  } else if (figures.has("rank")) {
    epoch.ranks.push_back(
        {figures.count("rank", 0), "", train_s, figures.number("comm_s"), std::nullopt, std::nullopt});
    if (train_s) epoch.train_s = std::max(epoch.train_s.value_or(0), *train_s);
  } else {
    epoch.train_s = train_s;
    epoch.test_s = figures.number("test_s");
    epoch.test_accuracy = cell.test_accuracy = figures.number("test_accuracy");
  }
}

}  // namespace

std::vector<Cell> import_figures(PublishedText& text) {
  const FiguresTable table = read_figures(text);
  const bool has_epochs = has_figures(text, {"epoch"});
  // Rows that differ in nothing else are of one run.
  const auto is_same_run = [&](const FiguresTable::Row& a, const FiguresTable::Row& b) {
    for (std::size_t i = 0; i < table.columns.size(); ++i)
      if (!is_of_a_part(table.columns[i]) && a.fields[i] != b.fields[i]) return false;
    return has_epochs;
  };
  std::vector<Cell> cells;
  std::map<std::string, int> repeats;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const FigureRow figures(text, table, table.rows[i]);
    if (i == 0 || !is_same_run(table.rows[i - 1], table.rows[i])) {
      Cell cell = begin_cell(text, figures);
      if (!cell.stated.is_average) cell.repeat = ++repeats[key_of(cell.config)];
      cells.push_back(std::move(cell));
    }
    if (has_epochs) add_epoch(figures, cells.back());
  }
  for (const Cell& cell : cells) note_steps_named_twice(text, cell);
  return cells;
}

}  // namespace tutti
