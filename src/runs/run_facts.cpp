#include "runs/run_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <utility>

#include "base/folder_lock.h"
#include "record/record_reader.h"
#include "status/status_files.h"
#include "tutti/error.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// Puts records together, one at a time.
class FactsReader {
 public:
  explicit FactsReader(RunFacts& facts) : facts_(facts) {}

  void add(const RecordReader& reader) {
    if (facts_.began_s == 0) facts_.began_s = part_began_s_ = reader.time_s();
    if (reader.is<RunRecord>()) begin_part(reader.as<RunRecord>(), reader.time_s());
    facts_.last_s = std::max(facts_.last_s, reader.time_s());
    if (reader.is<ProgressRecord>()) {
      const auto record = reader.as<ProgressRecord>();
      reach(record.step);
      facts_.samples_per_s = record.data_per_s;
      if (record.loss) facts_.progress.push_back({samples_at(record.step), seconds(), *record.loss});
    } else if (reader.is<EpochRecord>()) {
      RunEpoch epoch{reader.as<EpochRecord>(), 0, 0};
      reach(epoch.record.step);
      epoch.samples = samples_at(epoch.record.step);
      epoch.seconds = seconds();
      epoch.record.step_s.clear();
      facts_.samples_per_s = epoch.record.data_per_s;
      if (epoch.record.test) facts_.test = epoch.record.test;
      facts_.epochs.push_back(std::move(epoch));
    } else if (reader.is<CheckpointRecord>()) {
      facts_.checkpoints.push_back(reader.as<CheckpointRecord>());
      reach(facts_.checkpoints.back().step);
    } else if (reader.is<EndRecord>()) {
      if (facts_.summary) return;  // it was resumed, and did not come to train
      const auto end = reader.as<EndRecord>();
      facts_.state = end.is_failed ? RunState::failed : RunState::stopped;
      facts_.problem = end.is_failed ? end.reason : "";
      reach(end.step);
    } else if (reader.is<SummaryRecord>()) {
      end(reader.as<SummaryRecord>());
    }
  }

 private:
  void begin_part(RunRecord record, double time_s) {
    const auto from = static_cast<double>(record.resumed_at_step);
    const RunConfig& config = record.parsed;
    const auto step_samples = static_cast<double>(config.batch * config.accumulate * config.ranks);
    const double samples = facts_.parts > 0 ? samples_at(record.resumed_at_step) : from * step_samples;
    if (facts_.parts > 0) seconds_before_ += std::max(0.0, facts_.last_s - part_began_s_);
    // Somebody may have gone back: what came after that checkpoint is no part of this run any more.
    const auto drop = [&](auto& list, const auto& is_later) {
      list.erase(std::remove_if(list.begin(), list.end(), is_later), list.end());
    };
    drop(facts_.progress, [&](const LossPoint& point) { return point.samples > samples; });
    drop(facts_.epochs, [&](const RunEpoch& epoch) { return epoch.record.step > record.resumed_at_step; });
    drop(facts_.checkpoints, [&](const CheckpointRecord& saved) { return saved.step > record.resumed_at_step; });
    facts_.test.reset();
    for (const RunEpoch& epoch : facts_.epochs)
      if (epoch.record.test) facts_.test = epoch.record.test;
    facts_.summary.reset();
    facts_.state = RunState::interrupted;
    facts_.problem.clear();
    facts_.step = record.resumed_at_step;
    first_samples_ = samples;
    first_step_ = from;
    step_samples_ = step_samples;
    part_began_s_ = time_s;
    ++facts_.parts;
    facts_.run = std::move(record);
  }

  void end(SummaryRecord record) {
    facts_.state = RunState::finished;
    reach(record.steps);
    facts_.samples_per_s = record.samples_per_s;
    if (record.is_tested) facts_.test = record.test;
    facts_.summary = std::move(record);
  }

  void reach(int64_t step) { facts_.step = std::max(facts_.step, step); }
  double samples_at(int64_t step) const {
    return first_samples_ + (static_cast<double>(step) - first_step_) * step_samples_;
  }
  double seconds() const { return seconds_before_ + std::max(0.0, facts_.last_s - part_began_s_); }

  RunFacts& facts_;
  // Of the part that is being read.
  double first_samples_ = 0, first_step_ = 0, step_samples_ = 0, part_began_s_ = 0;
  double seconds_before_ = 0;  // of the parts before it
};

/// What the ranks of a run that is going on show of themselves.
void look_at_ranks(RunFacts& facts) {
  const fs::path folder = fs::absolute(facts.folder).lexically_normal();
  for (const SeenJob& job : read_jobs(folder.parent_path())) {
    std::error_code ignored;
    if (!job.is_live() || !fs::equivalent(job.run(), folder, ignored)) continue;
    const RankStatus& first = job.ranks.front().status;
    if (facts.holder.empty()) facts.holder = fmt::format("process {} on {}", first.pid, first.host);
    facts.state = RunState::running;
    facts.step = std::max(facts.step, first.step);
    facts.steps = first.steps;
    if (first.data_per_s > 0) facts.samples_per_s = first.data_per_s;
    return;
  }
}

json number_or_null(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? json(*value) : json();
}

json text_or_null(const std::string& text) { return text.empty() ? json() : json(text); }

}  // namespace

const char* word(RunState state) {
  switch (state) {
    case RunState::running:
      return "running";
    case RunState::finished:
      return "finished";
    case RunState::stopped:
      return "stopped";
    case RunState::failed:
      return "failed";
    case RunState::interrupted:
      return "interrupted";
    case RunState::unreadable:
      return "unreadable";
  }
  return "?";
}

std::optional<double> RunFacts::loss() const {
  const bool has_epoch = !epochs.empty() && epochs.back().record.train_loss;
  if (!progress.empty() && (!has_epoch || progress.back().samples >= epochs.back().samples))
    return progress.back().loss;
  return has_epoch ? epochs.back().record.train_loss : std::nullopt;
}

RunFacts read_run_facts(const fs::path& records_file) {
  RunFacts facts;
  facts.folder = records_file.has_parent_path() ? records_file.parent_path() : fs::path(".");
  facts.name = fs::absolute(facts.folder / "x").lexically_normal().parent_path().filename().string();
  try {
    FactsReader facts_reader(facts);
    for (RecordReader reader(records_file); reader.next();) facts_reader.add(reader);
  } catch (const Error& problem) {
    facts.state = RunState::unreadable;
    facts.problem = problem.what();
  }
  facts.holder = lock_holder(facts.folder);
  if (!facts.holder.empty()) facts.state = RunState::running;
  look_at_ranks(facts);
  return facts;
}

std::string headline(const std::optional<TestResults>& test) {
  if (!test || test->metrics.empty()) return "";
  const auto& [name, value] = test->metrics.front();
  if (const auto accuracy = test->metric("accuracy")) return fmt::format("{:.1f} %", *accuracy * 100);
  return fmt::format("{} {:.3f}", name, value);
}

std::string readable_date(double seconds_since_1970) {
  if (!(seconds_since_1970 > 0)) return "";
  const auto time = static_cast<std::time_t>(seconds_since_1970);
  std::tm local{};
  ::localtime_r(&time, &local);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M", &local);
  return text;
}

json to_json(const RunFacts& facts) {
  json test;
  if (facts.test) {
    test = {{"samples", facts.test->samples}, {"loss", number_or_null(facts.test->loss)}};
    for (const auto& [name, value] : facts.test->metrics) test[name] = value;
  }
  const RunConfig& config = facts.config();
  return {{"name", facts.name},
          {"folder", facts.folder.string()},
          {"state", word(facts.state)},
          {"problem", text_or_null(facts.problem)},
          {"holder", text_or_null(facts.holder)},
          {"model", config.model},
          {"data", config.data},
          {"batch", config.batch},
          {"ranks", config.ranks},
          {"strategy", config.strategy},
          {"strategy_used", facts.summary ? text_or_null(facts.summary->strategy_used) : json()},
          {"transport", facts.summary ? facts.summary->transport : config.transport},
          {"device", config.device_used},
          {"precision", config.precision},
          {"began_s", facts.began_s},
          {"last_s", facts.last_s},
          {"parts", facts.parts},
          {"step", facts.step},
          {"steps", facts.steps > 0 ? json(facts.steps) : json()},
          {"loss", number_or_null(facts.loss())},
          {"test", test},
          {"samples_per_s", facts.samples_per_s}};
}

}  // namespace tutti
