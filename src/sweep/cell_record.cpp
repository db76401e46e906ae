#include "sweep/cell_record.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/utf8.h"
#include "record/record_file.h"
#include "record/record_reader.h"
#include "report/run_records.h"
#include "tutti/error.h"

namespace tutti::sweep {
namespace {

namespace fs = std::filesystem;

/// Only a line that is whole counts: the run may have ended while it wrote the last one.
RunRecords read_run(const fs::path& folder) {
  RunRecords run;
  if (!fs::exists(folder / kRecordsFile)) return run;
  for (RecordReader reader(folder / kRecordsFile); reader.next() && reader.is_whole();) run.add(reader);
  return run;
}

/// The sweep's settings, completed with what the run says of itself.
tutti::Configuration full_config(const SweepCell& cell, const RunRecords& run) {
  auto config = cell.config.get<tutti::Configuration>();
  if (run.is_begun()) {
    const RunConfig& used = run.config();
    const RunConfig nothing;
    const auto take = [&](auto& to, auto RunConfig::*member) {
      if (used.*member != nothing.*member) to = used.*member;
    };
    take(config.model, &RunConfig::model);
    take(config.data, &RunConfig::data);
    take(config.precision, &RunConfig::precision);
    take(config.batch, &RunConfig::batch);
    take(config.workers, &RunConfig::workers);
    config.ranks = used.ranks;
    if (used.ranks > 1) {
      take(config.strategy, &RunConfig::strategy);
      take(config.wire, &RunConfig::wire);
      if (used.servers > 0) config.servers = used.servers;
    }
  }
  if (run.summary()) {
    config.device = run.summary()->device;
    if (config.ranks != 1) config.transport = run.summary()->transport;
  }
  config.nodes = cell.nodes;
  return config;
}

/// Why a run that has ended well all the same does not count, or "".
std::string what_is_missing(const Cell& cell, const RunRecords& run) {
  if (!run.is_begun()) return "it ended without a record of what it ran";
  if (!run.summary()) return "it ended without a summary";
  if (cell.step_s.empty()) return "it ended without the time of a single step";
  if (static_cast<int64_t>(cell.step_s.size()) != run.summary()->steps)
    return fmt::format("it has the times of {} steps instead of {}", cell.step_s.size(), run.summary()->steps);
  return "";
}

/// Short, and text that JSON can hold: a program may print anything.
std::string readable(std::string text) {
  constexpr std::size_t kLongest = 1000;
  if (text.size() > kLongest) text.resize(kLongest);
  return valid_utf8(std::move(text));
}

}  // namespace

std::string last_complaint(const std::string& output) {
  std::istringstream lines(output);
  std::string own;
  std::string last;
  for (std::string line; std::getline(lines, line);) {
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
    if (line.empty()) continue;
    last = line;
    if (line.rfind("[rank ", 0) == 0) line = line.substr(std::min(line.size(), line.find("] ") + 2));
    if (line.rfind("tutti: ", 0) == 0) own = line.substr(7);
  }
  return readable(own.empty() ? last : own);
}

Cell make_cell_record(const SweepCell& cell, const std::string& sweep, int warmup_steps, const fs::path& run_folder,
                      const Attempt& attempt) {
  Cell record;
  record.error = attempt.error;
  try {
    const RunRecords run = read_run(run_folder);
    if (run.is_begun()) {
      record = *run.cell();
      record.error = attempt.error;
    }
    record.config = full_config(cell, run);
    if (run.summary()) record.run_s = run.summary()->train_s;
    if (record.error.empty()) record.error = what_is_missing(record, run);
  } catch (const Error& unreadable) {
    record.config = cell.config.get<tutti::Configuration>();
    if (record.error.empty()) record.error = fmt::format("its records cannot be read: {}", unreadable.what());
  }
  if (!record.environment) record.environment = std::make_shared<const Environment>(this_environment());
  record.is_failed = !record.error.empty();
  record.sweep = sweep;
  record.id = cell.id;
  record.repeat = cell.repeat;
  record.is_baseline = cell.is_baseline;
  record.load = attempt.load;
  record.command = attempt.command;
  record.launcher = attempt.launcher;
  record.wall_s = attempt.wall_s;
  record.warmup_steps = warmup_steps;
  if (!cell.network.empty())
    record.network = {cell.network, cell.emulated.is_slowed(), cell.emulated.gbps, cell.emulated.startup_us,
                      cell.emulated.note};
  return record;
}

}  // namespace tutti::sweep
