#pragma once

#include <optional>
#include <vector>

#include "record/record_reader.h"

namespace tutti {

/// Puts the records that `tutti train` writes together to a cell, one record at a time; of a resumed run, the parts.
class RunRecords {
 public:
  /// Takes the reader's current record. Those that say nothing for a report are passed over.
  void add(const RecordReader& reader);

  bool is_begun() const { return run_.has_value(); }
  /// What the last part was asked to do.
  const RunConfig& config() const { return config_; }
  const std::optional<SummaryRecord>& summary() const { return summary_; }
  /// None where no run began. A run without a summary has not come to its end: that is a failed cell.
  std::optional<Cell> cell() const;
  /// Of a run that goes on: what it has done so far, which is no failure.
  std::optional<Cell> cell_so_far() const;

 private:
  void begin(RunRecord record);
  void add_epoch(const EpochRecord& record);
  void end(SummaryRecord record);

  std::optional<RunRecord> run_;
  RunConfig config_;
  std::optional<SummaryRecord> summary_;  // of the last part
  Cell cell_;
  std::vector<RateAtStep> rates_;  // since the last epoch ended
};

}  // namespace tutti
