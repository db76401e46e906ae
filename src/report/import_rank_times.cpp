#include <fmt/format.h>

#include <algorithm>
#include <regex>

#include "report/import.h"

namespace tutti {
namespace {

/// The log of one run: all its ranks write to it, in any order within an epoch.
struct RunLog {
  std::size_t line = 0;  // where it begins
  int workers = -1;
  int ranks = 0;
  int epochs = 0;
  int64_t batch = 0;
  std::string model;
  std::vector<double> train_s, comm_s;  // in order of the text
};

Cell finished(const PublishedText& text, const RunLog& log) {
  // A rank begins an epoch when all have ended the one before, so times come epoch by epoch.
  const auto expected = static_cast<std::size_t>(log.ranks) * static_cast<std::size_t>(log.epochs);
  if (log.train_s.size() != expected || log.comm_s.size() != expected)
    refuse_line(text, log.line,
                fmt::format("{} ranks and {} epochs make {} training and communication times, but {} and {} follow",
                            log.ranks, log.epochs, expected, log.train_s.size(), log.comm_s.size()));
  Cell cell = published_cell(text, log.line);
  cell.config.model = log.model;
  cell.config.batch = log.batch;
  cell.config.workers = log.workers;
  cell.config.ranks = log.ranks;
  cell.is_baseline = log.ranks == 1;
  for (int e = 0; e < log.epochs; ++e) {
    EpochTimes epoch;
    epoch.epoch = e + 1;
    for (int rank = 0; rank < log.ranks; ++rank) {
      const auto i = static_cast<std::size_t>(e) * static_cast<std::size_t>(log.ranks) + static_cast<std::size_t>(rank);
      epoch.ranks.push_back({rank, "", log.train_s[i], log.comm_s[i], std::nullopt, std::nullopt});
      epoch.train_s = std::max(epoch.train_s.value_or(0), log.train_s[i]);
    }
    cell.epochs.push_back(std::move(epoch));
  }
  return cell;
}

}  // namespace

bool has_rank_times(const PublishedText& text) {
  return std::any_of(text.lines.begin(), text.lines.end(),
                     [](const std::string& line) { return line.rfind("Running with ", 0) == 0; });
}

std::vector<Cell> import_rank_times(PublishedText& text) {
  static const std::regex workers_line("workers (\\d+)"), run_line("Running with (\\d+) GPUs?"),
      epoch_line("Epoch is \\[(\\d+)/(\\d+)\\], batch size (\\d+)"), train_line("Training time: (\\S+) seconds"),
      comm_line("Communication time: (\\S+) seconds"), model_line("[A-Za-z][A-Za-z0-9_-]*"), rule_line("-+");
  std::vector<Cell> cells;
  RunLog log;
  std::string first_model;
  int workers = -1;
  const auto finish = [&] {
    if (log.ranks > 0) cells.push_back(finished(text, log));
    log = RunLog();
    log.workers = workers;
  };
  for (std::size_t i = 0; i < text.lines.size(); ++i) {
    const std::string& line = text.lines[i];
    std::smatch match;
    if (line.empty() || line[0] == '#' || std::regex_match(line, rule_line)) continue;
    if (std::regex_match(line, match, workers_line)) {
      workers = count_of(text, i, match[1], "number of workers");
      finish();
    } else if (std::regex_match(line, match, run_line)) {
      std::string model = log.ranks == 0 ? log.model : "";
      if (log.ranks > 0) {
        model = log.model;
        finish();
      }
      log.model = std::move(model);
      log.line = i;
      log.ranks = count_of(text, i, match[1], "number of GPUs");
      if (log.ranks < 1 || log.ranks > kMostPublishedRanks) refuse_line(text, i, "no run has so many GPUs");
    } else if (std::regex_match(line, match, model_line)) {
      finish();
      log.model = line;
      if (first_model.empty()) first_model = line;
    } else if (log.ranks == 0) {
      refuse_line(text, i, "before 'Running with … GPUs' nothing is expected but workers and a model");
    } else if (std::regex_match(line, match, epoch_line)) {
      log.epochs = count_of(text, i, match[2], "number of epochs");
      log.batch = count_of(text, i, match[3], "batch size");
    } else if (std::regex_match(line, match, train_line)) {
      log.train_s.push_back(number_of(text, i, match[1], "number of seconds"));
    } else if (std::regex_match(line, match, comm_line)) {
      log.comm_s.push_back(number_of(text, i, match[1], "number of seconds"));
      if (log.comm_s.size() != log.train_s.size()) refuse_line(text, i, "no training time belongs to this");
    } else {
      refuse_line(text, i, "this is no line of such a log");
    }
  }
  finish();
  for (Cell& cell : cells)
    if (cell.config.model.empty()) cell.config.model = first_model;  // the first part of a log may not name it
  return cells;
}

}  // namespace tutti
