#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tutti {

/// Where a figure comes from. A report never mixes them unlabelled.
enum class Source { measured, simulated, published };
const char* word(Source source);

/// What was run. An empty text, 0, or -1 where 0 means something: not stated.
struct Configuration {
  std::string model, data, strategy, wire, transport, network, precision, device;
  std::string other;  // further settings, "width 64, tokens 128"
  int64_t batch = 0;  // per rank
  int ranks = 0;
  int nodes = 0;
  int servers = -1;
  int workers = -1;
};

/// The same for the same configuration, and only then.
std::string key_of(const Configuration& config);

/// "resnet50, batch 64, 10gbe, mgwfbp, 4 ranks"; what is not stated is left out.
std::string describe(const Configuration& config);

struct RankTimesOfEpoch {
  int rank = 0;
  std::string node;
  std::optional<double> train_s, comm_s, comm_exposed_s, data_wait_s;
};

struct RateAtStep {
  int64_t step = 0;
  double data_per_s = 0;
};

struct EpochTimes {
  int epoch = 0;
  std::optional<double> train_s, test_s, test_accuracy, loss;
  std::vector<RateAtStep> rates;
  std::vector<RankTimesOfEpoch> ranks;
};

/// Seconds per step, mean over ranks.
struct StepParts {
  double compute_s = 0, data_wait_s = 0, optimizer_s = 0;
  std::vector<std::pair<std::string, double>> exposed;  // communication that computation waited for, by cause
};

struct NodeShare {
  std::string name;
  int ranks = 0;
  std::string gpu;
};

struct StatedRate {
  double mean = 0;  // samples/s
  std::optional<double> deviation;
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
  Source source = Source::measured;
  std::string sweep, id;
  int repeat = 1;
  bool is_failed = false;
  std::string error;
  Configuration config;
  bool is_baseline = false;
  std::shared_ptr<const nlohmann::json> environment;  // null if none; cells of one sweep share it
  std::optional<double> load;
  std::string command;
  double samples_per_step = 0;
  std::vector<double> step_s;  // of rank 0, warm-up included
  int64_t warmup_steps = 0;    // declared
  std::optional<StatedRate> throughput;
  std::vector<EpochTimes> epochs;
  std::optional<StepParts> parts;
  int64_t steps = 0;
  double run_s = 0;
  std::optional<double> test_accuracy;
  std::vector<NodeShare> nodes;
  std::string node_list;  // Slurm's form
  Stated stated;
  std::string folder;  // of the run, "" if unknown; a trace may lie there
};

/// Reads cell records, one after the other.
class CellParser {
 public:
  /// The text of one record. Absent fields are fine; one of the wrong kind, or a damaged text, throws Error naming it.
  Cell parse(std::string_view record);

 private:
  std::shared_ptr<const nlohmann::json> environment(std::string_view text);

  // Most cells have the environment of the one before, and share it.
  std::string last_text_;
  std::shared_ptr<const nlohmann::json> last_environment_;
};
nlohmann::json to_json(const Cell& cell);

}  // namespace tutti
