#include "watch/run_history.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "base/names.h"
#include "base/utf8.h"
#include "tutti/error.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::size_t kMostWarnings = 5, kMostResumes = 100;
// More than the length of a record's beginning, with its time.
constexpr std::streamoff kEndBytes = 256;

std::string bytes_before(const fs::path& file, std::streamoff place) {
  std::ifstream stream(file, std::ios::binary);
  std::string text(static_cast<std::size_t>(std::min(place, kEndBytes)), '\0');
  stream.seekg(place - static_cast<std::streamoff>(text.size()));
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(std::max<std::streamsize>(0, stream.gcount())));
  return text;
}

/// Every number of the record but its step: members that records get later are shown without more ado.
StepTable::Numbers numbers_of(const json& record) {
  StepTable::Numbers numbers;
  for (const auto& [name, value] : record.items())
    if (value.is_number() && name != "step" && name != "epoch") numbers.emplace_back(name, value.get<double>());
  return numbers;
}

json rank_shares(const RankEpoch& rank) {
  json shares = json::object();
  if (rank.train_s > 0) {
    shares["exposed_share"] = rank.comm_exposed_s / rank.train_s;
    shares["data_wait_share"] = rank.data_wait_s / rank.train_s;
  }
  return shares;
}

json describe(const RunConfig& config) {
  return {{"model", config.model},
          {"data", config.data},
          {"strategy", config.strategy},
          {"transport", config.transport},
          {"precision", config.precision},
          {"optimizer", config.optimizer},
          {"device", config.device_used.empty() ? config.device : config.device_used},
          {"batch", config.batch},
          {"accumulate", config.accumulate},
          {"ranks", config.ranks},
          {"threads", config.threads}};
}

}  // namespace

void RunHistory::forget() {
  const uint64_t changes = changes_ + 1;
  *this = RunHistory();
  changes_ = changes;
}

void RunHistory::warn(const std::string& text) {
  const std::string shown = valid_utf8(text);
  if (warnings_.size() < kMostWarnings && !contains(warnings_, shown)) warnings_.push_back(shown);
}

bool RunHistory::goes_on(const fs::path& records) const {
  return end_.empty() || bytes_before(records, place_.bytes) == end_;
}

void RunHistory::keep_end(const fs::path& records) { end_ = bytes_before(records, place_.bytes); }

void RunHistory::read(const fs::path& records) {
  std::error_code error;
  const std::uintmax_t bytes = fs::file_size(records, error);
  if (error) {
    if (!is_empty()) forget();
    return;
  }
  const auto changed_at = fs::last_write_time(records, error);
  if (bytes == seen_bytes_ && changed_at == seen_at_) return;
  if (bytes < static_cast<std::uintmax_t>(place_.bytes) || !goes_on(records)) forget();
  seen_bytes_ = bytes;
  seen_at_ = changed_at;
  try {
    RecordReader reader(records, place_);
    for (bool is_more = true; is_more;) {
      try {
        is_more = reader.next();
        if (is_more && reader.is_whole()) take(reader);
      } catch (const Error& problem) {
        if (reader.place().lines == place_.lines) throw;  // the file, not a line of it
        warn(problem.what());
      }
      place_ = reader.place();
    }
  } catch (const Error& problem) {
    warn(problem.what());
  }
  keep_end(records);
}

void RunHistory::take(const RecordReader& reader) {
  const double time_s = reader.time_s();
  if (reader.is<RunRecord>()) {
    begin(reader.as<RunRecord>(), time_s);
  } else if (reader.is<ProgressRecord>()) {
    add(reader.as<ProgressRecord>(), time_s);
  } else if (reader.is<EpochRecord>()) {
    add(reader.as<EpochRecord>(), time_s);
  } else if (reader.is<PlanRecord>()) {
    const PlanRecord record = reader.as<PlanRecord>();
    facts_["plan"] = {
        {"step", record.step}, {"strategy", record.plan.strategy}, {"transfers", record.plan.transfers.size()}};
  } else if (reader.is<StepBreakdown>()) {
    facts_["breakdown"] = reader.as<StepBreakdown>();
    facts_["breakdown"].erase("transfers");  // of a large model there are hundreds
  } else if (reader.is<CheckpointRecord>()) {
    facts_["checkpoint"] = {{"step", reader.as<CheckpointRecord>().step}, {"time", time_s}};
  } else if (reader.is<SummaryRecord>()) {
    finish(reader.as<SummaryRecord>());
  }
  if (time_s <= 0) return;
  facts_["last_record"] = time_s;
  if (!facts_.contains("first_record")) facts_["first_record"] = time_s;
}

void RunHistory::begin(const RunRecord& run, double time_s) {
  if (has_begun_) {
    const bool is_same = progress_.go_back_to(run.resumed_at_step), are_same = epochs_.go_back_to(run.resumed_at_step);
    if (!is_same || !are_same) ++changes_;
  }
  json& resumes = facts_["resumes"];
  if (!resumes.is_array()) resumes = json::array();
  if ((has_begun_ || run.resumed_at_step > 0) && resumes.size() < kMostResumes)
    resumes.push_back({{"step", run.resumed_at_step}, {"time", time_s}});
  has_begun_ = true;
  is_finished_ = false;
  facts_.erase("summary");
  facts_["config"] = describe(run.parsed);
  facts_["nodes"] = json::array();
  for (const NodeRanks& node : run.nodes) facts_["nodes"].push_back(node.host);
}

void RunHistory::add(const ProgressRecord& progress, double time_s) {
  if (!progress_.add(progress.step, time_s, numbers_of(progress))) ++changes_;
}

void RunHistory::add(const EpochRecord& epoch, double time_s) {
  StepTable::Numbers numbers = {{"epoch", static_cast<double>(epoch.epoch)}, {"data_per_s", epoch.data_per_s}};
  if (epoch.train_loss) numbers.emplace_back("train_loss", *epoch.train_loss);
  if (epoch.test) {
    numbers.emplace_back("test_loss", epoch.test->loss);
    for (const auto& [name, value] : epoch.test->metrics) numbers.emplace_back("test_" + name, value);
  }
  RankTimes all;
  json ranks = json::array();
  for (const RankEpoch& rank : epoch.ranks) {
    all.add(rank);
    ranks.push_back(rank_shares(rank));
  }
  if (all.train_s > 0) {
    numbers.emplace_back("exposed_share", all.comm_exposed_s / all.train_s);
    numbers.emplace_back("data_wait_share", all.data_wait_s / all.train_s);
  }
  if (!epochs_.add(epoch.step, time_s, numbers)) ++changes_;
  facts_["last_epoch"] = {{"epoch", epoch.epoch}, {"ranks", std::move(ranks)}, {"stragglers", epoch.stragglers}};
}

void RunHistory::finish(const SummaryRecord& summary) {
  is_finished_ = true;
  facts_["summary"] = {{"steps", summary.steps},
                       {"epochs", summary.epochs},
                       {"samples_per_s", summary.samples_per_s},
                       {"samples_per_s_steady", summary.samples_per_s_steady},
                       {"train_s", summary.train_s},
                       {"strategy_used", summary.strategy_used},
                       {"transport", summary.transport}};
}

json RunHistory::facts() const {
  json facts = facts_;
  facts["warnings"] = warnings_;
  return facts;
}

}  // namespace tutti
