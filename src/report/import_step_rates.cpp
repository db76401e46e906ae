#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <regex>

#include "record/node_list.h"
#include "report/import.h"

namespace tutti {
namespace {

const std::regex& step_line() {
  static const std::regex line("- Step ?(\\d+):? +([0-9.]+) data/sec");
  return line;
}

/// What the headings above a list say.
struct Context {
  std::string model, data, gpu;
  int64_t batch = 0;
  int ranks = 1;          // as the last heading says
  int section_ranks = 1;  // as the main heading says
};

/// Takes from a heading what it says of the things that hold below it.
void take(Context& context, const PublishedText& text, std::size_t i, const std::string& heading) {
  static const std::regex ranks_of_node("(\\d+) GPUs"), times("\\b(\\d+)x([0-9A-Za-z]+)"),
      batch("(?:(\\d+) ?batch_?size)|(?:batch_?size: ?(\\d+))"), gpu("\\b(\\d+ti)\\b"),
      model("([A-Z][A-Za-z]*[0-9]*)(?:-| \\d).*|([A-Z][A-Za-z]+[0-9]+)"), data("\\b(MNIST|SST-?5)\\b");
  std::smatch match;
  if (std::regex_search(heading, match, data)) context.data = match[1];
  if (std::regex_search(heading, match, batch))
    context.batch = count_of(text, i, match[1].matched ? match[1] : match[2], "batch size");
  if (std::regex_search(heading, match, gpu)) context.gpu = match[1];
  if (std::regex_search(heading, match, ranks_of_node))
    context.ranks = context.section_ranks = count_of(text, i, match[1], "number of GPUs");
  if (std::regex_match(heading, match, model)) {
    context.model = match[1].matched ? match[1] : match[2];
    context.ranks = context.section_ranks;
  }
  if (heading.find(':') == std::string::npos && std::regex_search(heading, match, times)) {
    context.ranks = count_of(text, i, match[1], "number of GPUs");
    context.gpu = match[2];
  }
}

/// "lm6-198.38-1.648x, baseline: 120.7" and its like begin a list; none for headings that do not.
std::optional<Cell> cell_of_heading(Context context, const PublishedText& text, std::size_t i,
                                    const std::string& heading) {
  static const std::regex result("(.*?)[-, ]+([0-9.]+)(?:-([0-9.]+)x,? *[Bb]aseline: *([0-9.]+))?"),
      share("([A-Za-z][A-Za-z0-9]*):(\\d+)x([0-9A-Za-z]+)"), host("[A-Za-z][A-Za-z0-9]*");
  std::smatch match;
  if (!std::regex_match(heading, match, result)) return std::nullopt;
  const std::string where = match[1];
  Cell cell = published_cell(text, i);
  std::vector<NodeShare> nodes;
  for (std::sregex_iterator at(where.begin(), where.end(), share), end; at != end; ++at)
    nodes.push_back({(*at)[1], count_of(text, i, (*at)[2], "number of GPUs"), (*at)[3]});
  if (!nodes.empty()) {
    take(context, text, i, where);
    context.ranks = 0;
    for (const NodeShare& node : nodes) context.ranks += node.ranks;
  } else if (std::regex_match(where, host)) {
    nodes.push_back({where, context.ranks, context.gpu});
  } else {
    return std::nullopt;
  }
  if (context.model.empty()) refuse_line(text, i, "no heading above names a model");
  if (context.ranks < 1) refuse_line(text, i, "nothing runs on so few GPUs");
  cell.throughput = StatedRate{number_of(text, i, match[2], "rate"), std::nullopt};
  if (match[3].matched) cell.stated.speedup = number_of(text, i, match[3], "speed-up");
  cell.config.model = context.model;
  cell.config.data = context.data;
  cell.config.batch = context.batch;
  cell.config.ranks = context.ranks;
  cell.is_baseline = context.ranks == 1;
  place_on(cell, std::move(nodes));
  return cell;
}

/// Rates that no epoch's line followed.
void close(Cell& cell, std::vector<RateAtStep>& rates) {
  if (rates.empty()) return;
  EpochTimes epoch;
  epoch.epoch = static_cast<int>(cell.epochs.size());
  epoch.rates = std::move(rates);
  cell.epochs.push_back(std::move(epoch));
  rates.clear();
}

}  // namespace

bool has_step_rates(const PublishedText& text) {
  return std::any_of(text.lines.begin(), text.lines.end(),
                     [](const std::string& line) { return std::regex_match(line, step_line()); });
}

std::vector<Cell> import_step_rates(PublishedText& text) {
  static const std::regex epoch_line(
      "- Epoch (\\d+) in ([0-9.]+) sec, test time ([0-9.]+) sec[.,] [Tt]?est accuracy:? ?([0-9.]+)");
  std::vector<Cell> cells;
  std::vector<RateAtStep> rates;
  Context context;
  bool is_open = false;
  for (std::size_t i = 0; i < text.lines.size(); ++i) {
    const std::string& line = text.lines[i];
    std::smatch match;
    if (line.empty()) continue;
    if (line[0] == '#') {
      if (is_open) close(cells.back(), rates);
      is_open = false;
      const std::size_t level = std::min(line.find_first_not_of('#'), line.size());
      const std::string heading = trimmed(line.substr(level));
      if (std::optional<Cell> cell = cell_of_heading(context, text, i, heading)) {
        cells.push_back(std::move(*cell));
        is_open = true;
        continue;
      }
      if (level == 1) context = Context();
      take(context, text, i, heading);
    } else if (line.rfind("Setup:", 0) == 0) {
      take(context, text, i, line);
    } else if (!is_open) {
      refuse_line(text, i, "no heading above says which node and rate this belongs to");
    } else if (std::regex_match(line, match, step_line())) {
      rates.push_back({count_of(text, i, match[1], "step"), number_of(text, i, match[2], "rate")});
    } else if (std::regex_match(line, match, epoch_line)) {
      EpochTimes epoch;
      epoch.epoch = count_of(text, i, match[1], "epoch");
      epoch.train_s = number_of(text, i, match[2], "number of seconds");
      epoch.test_s = number_of(text, i, match[3], "number of seconds");
      epoch.test_accuracy = number_of(text, i, match[4], "accuracy");
      epoch.rates = std::move(rates);
      rates.clear();
      cells.back().test_accuracy = epoch.test_accuracy;
      cells.back().epochs.push_back(std::move(epoch));
    } else {
      refuse_line(text, i, "this is neither a step's rate nor an epoch's times");
    }
  }
  if (is_open) close(cells.back(), rates);
  for (const Cell& cell : cells) note_steps_named_twice(text, cell);
  return cells;
}

}  // namespace tutti
