#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tutti/records.h"

namespace tutti {

/// What has become of a run.
enum class RunState {
  running,
  finished,
  stopped,      // by a signal, after it had saved
  failed,       // with an error of its own
  interrupted,  // without a word: it was killed, or the machine went down
  unreadable,   // its records are damaged
};
const char* word(RunState state);

/// The mean loss since the point before.
struct LossPoint {
  double samples = 0;  // of all ranks, since training began
  double seconds = 0;  // since the run began, less the time in which it was stopped
  double loss = 0;
};

/// An epoch without the time of each step, and when it ended.
struct RunEpoch {
  EpochRecord record;
  double samples = 0, seconds = 0;
};

/// What the records of one run say, put together; of a run that was resumed, the parts that lead to its end.
struct RunFacts {
  std::filesystem::path folder;
  std::string name;  // of the folder
  RunState state = RunState::interrupted;
  std::string problem;             // why it failed, or cannot be read
  std::string holder;              // who runs it
  RunRecord run;                   // of the last part
  int parts = 0;                   // 0: it ended before training began
  double began_s = 0, last_s = 0;  // the first record and the last, in seconds since 1970
  int64_t step = 0;
  int64_t steps = 0;  // to do in all; 0 where that is not known
  double samples_per_s = 0;
  std::vector<LossPoint> progress;
  std::vector<RunEpoch> epochs;
  std::vector<CheckpointRecord> checkpoints;
  std::optional<TestResults> test;  // the last one
  std::optional<SummaryRecord> summary;

  const RunConfig& config() const { return run.parsed; }
  /// The last that was recorded.
  std::optional<double> loss() const;
};

/// Reads the records file of a run, and looks whether the run is going on. Damaged records are a state and no error.
RunFacts read_run_facts(const std::filesystem::path& records_file);

/// What a test came to by its first metric: "97.8 %", "dice 0.812"; "" without one.
std::string headline(const std::optional<TestResults>& test);
/// "2026-11-19 20:08", local time; "" for 0.
std::string readable_date(double seconds_since_1970);

/// All of it but losses, as `--json` prints it.
nlohmann::json to_json(const RunFacts& facts);

}  // namespace tutti
