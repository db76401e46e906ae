#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/files.h"
#include "options/option_table.h"
#include "record/record_file.h"
#include "runs/run_facts.h"

namespace tutti {

/// A folder of runs, made of records whose times a test chooses. Runs begin at second 1000.
class RunFolders : public testing::Test {
 protected:
  void SetUp() override { make_folders(folder_); }
  void TearDown() override { remove_tree(folder_); }

  RecordFile records_of(const std::string& run) const {
    make_folders(folder_ / run);
    return RecordFile(folder_ / run / kRecordsFile);
  }
  static RunRecord beginning(const TrainOptions& options, int ranks, int64_t resumed_at_step = 0) {
    RunRecord record;
    record.config = config_record(describe_options(options), ranks, "cpu");
    record.config["ranks"] = ranks;
    record.resumed_at_step = resumed_at_step;
    return record;
  }
  static ProgressRecord progress(int64_t step, double loss) { return {step, 0, 100, 0.1, loss}; }
  RunFacts facts(const std::string& run) const { return read_run_facts(folder_ / run / kRecordsFile); }

  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("tutti-runs-test-" + std::to_string(::getpid()));
};

/// Samples per step of so many ranks.
inline TrainOptions options_of(int64_t batch, const std::string& strategy = "buckets") {
  TrainOptions options;
  options.batch = batch;
  options.strategy = strategy;
  return options;
}

}  // namespace tutti
