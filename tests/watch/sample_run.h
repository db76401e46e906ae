#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/files.h"
#include "record/record_file.h"
#include "tutti/records.h"

namespace tutti {

/// A folder of runs for tests, and records in it. All times are round numbers, so that they can be checked by hand.
class SampleRuns {
 public:
  explicit SampleRuns(const std::string& name)
      : folder_(std::filesystem::temp_directory_path() / (name + "-" + std::to_string(::getpid()))) {
    remove_tree(folder_);
    make_folders(folder_);
  }
  ~SampleRuns() { remove_tree(folder_); }
  SampleRuns(const SampleRuns&) = delete;
  SampleRuns& operator=(const SampleRuns&) = delete;

  const std::filesystem::path& folder() const { return folder_; }
  std::filesystem::path records(const std::string& run) const { return folder_ / run / kRecordsFile; }

  void begin(const std::string& run, int64_t resumed_at_step = 0) const {
    make_folders(folder_ / run);
    RunRecord record;
    record.config = config_record({{"model", "mnist-cnn"}, {"data", "digits"}, {"strategy", "wfbp"}}, 2, "cpu");
    record.resumed_at_step = resumed_at_step;
    RecordFile(records(run)).add(record, 1000 + static_cast<double>(resumed_at_step));
  }
  void progress(const std::string& run, int64_t step, double loss) const {
    ProgressRecord record;
    record.step = step;
    record.data_per_s = 100;
    record.lr = 0.5;
    record.loss = loss;
    RecordFile(records(run)).add(record, 1000 + static_cast<double>(step));
  }
  /// Of two ranks, which waited for 1 and 3 of their 10 seconds.
  void epoch(const std::string& run, int64_t epoch, int64_t step, double accuracy) const {
    EpochRecord record;
    record.epoch = epoch;
    record.step = step;
    record.ranks = {{{10, 5, 1, 0, 0}, 100, 50, {}}, {{10, 5, 3, 0, 0}, 100, 50, {}}};
    record.test = TestResults{10, 0.25, {{"accuracy", accuracy}}};
    RecordFile(records(run)).add(record, 1000 + static_cast<double>(step));
  }
  void finish(const std::string& run, int64_t steps) const {
    SummaryRecord record;
    record.steps = steps;
    record.train_s = 20;
    record.samples_per_s_steady = 90;
    record.strategy_used = "wfbp";
    RecordFile(records(run)).add(record, 1000 + static_cast<double>(steps));
  }
  void append(const std::string& run, const std::string& text) const {
    std::ofstream(records(run), std::ios::app) << text;
  }

 private:
  std::filesystem::path folder_;
};

}  // namespace tutti
