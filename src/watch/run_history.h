#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "record/record_reader.h"
#include "tutti/records.h"
#include "watch/step_table.h"

namespace tutti {

/// What a run's records say, as curves and a few facts. It reads on from where it was, so looking once a second at a
/// long run costs nothing. A half-written last line waits for its end. A file that is another one now, or that has
/// become shorter, is read anew: copies of a run on another machine are replaced like that.
class RunHistory {
 public:
  void read(const std::filesystem::path& records);

  const StepTable& progress() const { return progress_; }
  const StepTable& epochs() const { return epochs_; }
  /// Grows when rows change that were there before.
  uint64_t changes() const { return changes_; }
  bool is_finished() const { return is_finished_; }
  bool is_empty() const { return place_.bytes == 0; }
  /// Everything but the tables: "config", "resumes", "plan", "checkpoint", "summary", "breakdown", "last_epoch",
  /// "last_record" (its time), "first_record", "warnings".
  nlohmann::json facts() const;

 private:
  void forget();
  bool goes_on(const std::filesystem::path& records) const;
  void keep_end(const std::filesystem::path& records);
  void take(const RecordReader& reader);
  void begin(const RunRecord& run, double time_s);
  void add(const ProgressRecord& progress, double time_s);
  void add(const EpochRecord& epoch, double time_s);
  void finish(const SummaryRecord& summary);
  void warn(const std::string& text);

  StepTable progress_, epochs_;
  nlohmann::json facts_ = nlohmann::json::object();
  std::vector<std::string> warnings_;
  bool has_begun_ = false;
  bool is_finished_ = false;
  uint64_t changes_ = 0;

  RecordPlace place_;
  std::string end_;  // what the file had before that place
  std::uintmax_t seen_bytes_ = 0;
  std::filesystem::file_time_type seen_at_;
};

}  // namespace tutti
