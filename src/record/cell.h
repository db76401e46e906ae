#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tutti/records.h"

namespace tutti {

/// Where a figure comes from. A report never mixes them unlabelled.
enum class Source { measured, simulated, published };
const char* word(Source source);

/// What was run. An empty text, 0, or -1 where 0 means something: not stated.
struct Configuration {
  std::string model, data, strategy, wire, transport, network, precision, device;
  std::string other;                                           // further settings, "width 64, tokens 128"
  std::vector<std::pair<std::string, std::string>> by_name{};  // … those that a record has by their names
  int64_t batch = 0;                                           // per rank
  int ranks = 0;
  int nodes = 0;
  int servers = -1;
  int workers = -1;

  /// Both together: "width 64, tokens 128".
  std::string further() const;
};

void from_json(const nlohmann::json& json, Configuration& config);

/// The same for the same configuration, and only then.
std::string key_of(const Configuration& config);

/// "resnet50, batch 64, 10gbe, mgwfbp, 4 ranks"; what is not stated is left out.
std::string describe(const Configuration& config);

struct RankTimesOfEpoch {
  int rank = -1;
  std::string node;
  std::optional<double> train_s, comm_s, comm_exposed_s, data_wait_s;
};

struct RateAtStep {
  int64_t step = 0;
  double data_per_s = 0;
  std::optional<double> loss{};  // of rank 0's own samples; of runs, not of cells
};

struct EpochTimes {
  int epoch = 0;
  std::optional<double> train_s, test_s, test_accuracy, test_dice, test_loss, loss;
  std::vector<RateAtStep> rates;
  std::vector<RankTimesOfEpoch> ranks;
};

/// Seconds per step, mean over ranks.
struct StepParts {
  double compute_s = 0, data_wait_s = 0, optimizer_s = 0;
  std::vector<std::pair<std::string, double>> exposed;  // communication that computation waited for, by cause
};
StepParts parts_of(const StepBreakdown& breakdown);

struct NodeShare {
  std::string name;
  int ranks = 0;
  std::string gpu;
};

struct StatedRate {
  double mean = 0;  // samples/s
  std::optional<double> deviation;
};

/// The network that a cell was measured on, by the name that its sweep gives it.
struct NetworkOfCell {
  std::string name;
  bool is_emulated = false;
  double gbps = 0, startup_us = 0;
  std::string note;
};

/// Figures that a published text states though they follow from others; shown as stated, and checked.
struct Stated {
  std::optional<double> speedup;
  std::optional<int> epochs;
  bool is_average = false;  // the row is the mean of the others of its configuration
};

/// One run of one configuration: a line of a sweep's cells.jsonl, a training run's folder, or a row of a published
/// table. What is absent was not recorded.
struct Cell {
  static constexpr const char* kKind = "cell";
  Source source = Source::measured;
  std::string sweep, id;
  int repeat = 1;
  bool is_failed = false;
  std::string error;
  Configuration config;
  bool is_baseline = false;
  std::shared_ptr<const Environment> environment;  // null if none; cells of one sweep share it
  std::optional<double> load;
  std::string command, launcher;
  double wall_s = 0;  // of the attempt, from outside
  std::optional<NetworkOfCell> network;
  double samples_per_step = 0;
  std::vector<double> step_s;  // of rank 0, warm-up included
  int64_t warmup_steps = 0;    // declared
  std::optional<StatedRate> throughput;
  std::vector<EpochTimes> epochs;
  std::optional<StepParts> parts;
  int64_t steps = 0;
  double run_s = 0;
  std::optional<double> test_accuracy, test_dice, test_loss;
  int64_t peak_rss_bytes = 0;
  std::vector<NodeShare> nodes;
  std::string node_list;  // Slurm's form
  Stated stated;
  std::string folder;       // of the run, "" if unknown; a trace may lie there
  std::string run;          // the name of a run of its own; "" for what belongs to a sweep or a text
  bool is_running = false;  // it goes on while it is read: its figures are those so far
};

/// The text of one record. Absent fields are fine; one of the wrong kind, or a damaged text, throws Error naming it.
Cell parse_cell(std::string_view record);
void to_json(nlohmann::json& json, const Cell& cell);

}  // namespace tutti
