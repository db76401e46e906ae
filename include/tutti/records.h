#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tutti/links.h"
#include "tutti/plan.h"
#include "tutti/profile.h"

/// What a training run records: one struct for each kind of record, and the writer that sends them to sinks. Their
/// names in JSON stand in src/record/schemas.cpp and nowhere else. What is absent in a record keeps its default when it
/// is read, so records of older versions stay readable. JSON has no NaN: a loss that is none is written as null and
/// read as NaN.
namespace tutti {

/// What a measurement depends on besides its options.
struct Environment {
  std::string tutti, commit, build, compiler, host, cpu;
  int cores = 0;
  std::string libtorch;                              // its version; "" where it is not known
  nlohmann::json others = nlohmann::json::object();  // what else a record says
};

/// Of this build and machine.
Environment this_environment(const std::string& libtorch = "");

/// A machine of the run and its ranks.
struct NodeRanks {
  std::string host;
  std::vector<int> ranks;
};

/// What readers of records want to know of a run's options; RunRecord::config holds all of them.
struct RunConfig {
  std::string model, data, strategy, wire, transport, precision, optimizer;
  std::string device;       // as asked for
  std::string device_used;  // what it came to
  int64_t batch = 0;        // per rank and micro-batch
  int64_t accumulate = 1;
  int ranks = 1;
  int servers = -1, workers = -1;  // -1: not stated
  int threads = 0;
  int64_t width = 0, depth = 0, tokens = 0;
  double clip_norm = 0;
  double link_gbps = 0, link_startup_us = 0;  // pretended; 0: links as they are
  bool by_node = false;
  bool outer_optimizer = false;  // the program updates, with an optimizer of its own
};

/// The beginning of a run, or of a part of it that was resumed.
struct RunRecord {
  static constexpr const char* kKind = "run";
  nlohmann::json config = nlohmann::json::object();  // see config_record()
  std::vector<NodeRanks> nodes;
  std::optional<Environment> environment;
  std::string launcher;  // what started the ranks
  int64_t resumed_at_step = 0;
  RunConfig parsed = {};  // from `config`, when the record was read
};
/// All options by their names, completed with what became of two of them: as records and checkpoints have it.
nlohmann::json config_record(nlohmann::json options, int ranks, const std::string& device_used);

/// One plan that `auto` has tried.
struct TriedPlan {
  std::string strategy;
  std::string settings;            // its sizes, as options of the command line
  double predicted_s = 0;          // a step
  std::vector<double> measured_s;  // a step, in each of its windows
  double step_s = 0;               // a step, made comparable with the others'
};

struct SearchRecord {
  int64_t steps = 0;
  int64_t chosen = 0;  // of the candidates
  std::vector<TriedPlan> candidates;
};

/// A plan, when it was decided on.
struct PlanRecord {
  static constexpr const char* kKind = "plan";
  Profile profile;
  Plan plan;
  int64_t step = 0;
  std::optional<Links> links;  // where they were measured
  std::optional<SearchRecord> search;
  std::string remark;
};

/// Every --log-every steps. Rates and losses are means since the last such record, or since the epoch began.
struct ProgressRecord {
  static constexpr const char* kKind = "progress";
  int64_t step = 0;
  int64_t epoch = 0;  // epochs done before this one
  double data_per_s = 0;
  double lr = 0;
  std::optional<double> loss;                // of rank 0's own samples; none in records of older versions
  std::optional<double> loss_smoothed = {};  // over the run: a step 50 steps ago counts a third of the newest
  std::optional<double> gradient_norm = {};  // of the step's sum over ranks, not clipped; see Engine::gradient_norm()
};

/// Totals of one rank over an epoch or a run.
struct RankTimes {
  double train_s = 0, comm_s = 0, comm_exposed_s = 0, data_wait_s = 0, test_s = 0;

  void add(const RankTimes& other);
};

struct RankEpoch : RankTimes {
  int64_t samples = 0;
  double loss_sum = 0;
  /// The median step of each third of the epoch, without waiting for other ranks; empty where there were few steps.
  std::vector<double> own_step_s;
};

struct NodeEpoch : NodeRanks {
  int64_t samples = 0;
  double data_per_s = 0, train_s = 0, comm_exposed_s = 0;
};

/// "test_samples", "test_loss" and "test_NAME" for every metric.
struct TestResults {
  int64_t samples = 0;
  double loss = 0;
  std::vector<std::pair<std::string, double>> metrics;

  std::optional<double> metric(const std::string& name) const;
};

struct EpochRecord {
  static constexpr const char* kKind = "epoch";
  int64_t epoch = 0;  // epochs done with this one
  int64_t step = 0;
  double train_s = 0;
  double data_per_s = 0;
  std::optional<double> train_loss;
  std::vector<RankEpoch> ranks;
  std::vector<NodeEpoch> nodes;     // where there are several
  std::optional<TestResults> test;  // where it was tested
  std::optional<double> test_s;
  std::vector<double> step_s;   // of every step, on rank 0
  std::vector<int> stragglers;  // ranks that take steadily longer than the others: see find_stragglers()
};

/// Where one rank's time went; means per step. The parts down to other_s add up to step_s.
struct RankBreakdown {
  double step_s = 0;
  double compute_s = 0;  // forward and backward
  double data_wait_s = 0;
  double optimizer_s = 0;  // also where computation waited for an update on the communication thread
  // Exposed communication: computation waited, and meanwhile …
  double slowest_rank_s = 0;  // … the transfer under way waited for the last rank to come
  double startup_s = 0;       // … all ranks were there, in the time that any message takes
  double bandwidth_s = 0;     // … and after that; copies from and to the device count here
  double scheduling_s = 0;    // … nothing was under way: threads were being woken
  double other_s = 0;

  double comm_s = 0;    // transfers under way, without waiting for the last rank
  double caused_s = 0;  // others waited, exposed, for this rank to come: the sum over them

  double exposed_s() const { return slowest_rank_s + startup_s + bandwidth_s + scheduling_s; }
  /// Every member above is one sum over steps: divides them all.
  RankBreakdown& operator/=(double count);
};
/// The mean over ranks, part by part: it adds up as each rank's parts do.
RankBreakdown mean_of(const std::vector<RankBreakdown>& ranks);

/// One transfer of the plan; means per step and rank.
struct TransferBreakdown {
  std::string name;
  Operation operation = Operation::all_reduce;
  int64_t bytes = 0;
  double busy_s = 0;     // from its start on the rank to its end
  double skew_s = 0;     // of that, until the last rank came
  double exposed_s = 0;  // of busy_s, computation waited
};

/// Where the time of a window of steps went.
struct StepBreakdown {
  static constexpr const char* kKind = "explain";
  int64_t first_step = 0;
  int64_t steps = 0;  // 0: nothing was recorded
  std::string strategy;
  bool is_of_device = false;      // times are a GPU's, of a step that it repeats; else the host's
  double startup_s = 0;           // of one all-reduce
  std::string startup_from = "";  // "links": measured; "smallest": the time of the smallest transfer; "": unknown
  std::vector<RankBreakdown> ranks;
  std::vector<TransferBreakdown> transfers;
};

struct CheckpointRecord {
  static constexpr const char* kKind = "checkpoint";
  int64_t step = 0;
  std::string folder;
  double seconds = 0;  // that saving took
};

/// A run, or a part of it, ended before it was done. One that is killed leaves none.
struct EndRecord {
  static constexpr const char* kKind = "end";
  bool is_failed = false;  // else a signal stopped it, and it can go on
  int64_t step = 0;
  std::string reason;
};

struct RankSummary : RankTimes {
  std::string weights_sha256;
  int64_t peak_rss_bytes = 0;
  int64_t optimizer_state_bytes = 0;
  double steady_s = 0;
  std::vector<std::string> bad_samples = {};  // that could not be read, and were replaced
};

/// The end of a run. Times and bytes are the largest of all ranks.
struct SummaryRecord : RankTimes {
  static constexpr const char* kKind = "summary";
  std::string model, data;
  int ranks = 1;
  std::string strategy, strategy_used;
  std::string transport;  // which it was, where "auto" was asked for
  std::vector<NodeRanks> nodes;
  std::string device, precision;
  int64_t steps = 0, epochs = 0;
  int64_t warm_up_steps = 0;  // left out of samples_per_s_steady
  int64_t samples = 0;
  double samples_per_s = 0, samples_per_s_steady = 0;
  std::string weights_sha256;
  int64_t peak_rss_bytes = 0, optimizer_state_bytes = 0;
  bool is_tested = false;  // false: the results below are written as null
  TestResults test;
  std::string best_metric;  // by which tests were compared; "": by none
  double best_value = 0;
  int64_t best_step = 0, best_epoch = 0;
  bool is_stopped_early = false;  // --patience was over
  std::string run_folder;
  nlohmann::json config = nlohmann::json::object();
  Environment environment;
  std::vector<RankSummary> per_rank;
  std::vector<std::string> bad_samples;  // of any rank, each once
};

// Reading throws Error that names the member which is missing or of the wrong kind.
void to_json(nlohmann::json& json, const Environment& environment);
void from_json(const nlohmann::json& json, Environment& environment);
void to_json(nlohmann::json& json, const RunConfig& config);
void from_json(const nlohmann::json& json, RunConfig& config);
void to_json(nlohmann::json& json, const RankEpoch& rank);
void from_json(const nlohmann::json& json, RankEpoch& rank);
void to_json(nlohmann::json& json, const RankSummary& rank);
void from_json(const nlohmann::json& json, RankSummary& rank);
void to_json(nlohmann::json& json, const TestResults& results);
void from_json(const nlohmann::json& json, TestResults& results);
void to_json(nlohmann::json& json, const RunRecord& record);
void from_json(const nlohmann::json& json, RunRecord& record);
void to_json(nlohmann::json& json, const PlanRecord& record);
void from_json(const nlohmann::json& json, PlanRecord& record);
void to_json(nlohmann::json& json, const ProgressRecord& record);
void from_json(const nlohmann::json& json, ProgressRecord& record);
void to_json(nlohmann::json& json, const EpochRecord& record);
void from_json(const nlohmann::json& json, EpochRecord& record);
void to_json(nlohmann::json& json, const StepBreakdown& record);
void from_json(const nlohmann::json& json, StepBreakdown& record);
void to_json(nlohmann::json& json, const CheckpointRecord& record);
void from_json(const nlohmann::json& json, CheckpointRecord& record);
void to_json(nlohmann::json& json, const EndRecord& record);
void from_json(const nlohmann::json& json, EndRecord& record);
void to_json(nlohmann::json& json, const SummaryRecord& record);
void from_json(const nlohmann::json& json, SummaryRecord& record);

/// Everything that a training run writes.
using Record = std::variant<RunRecord, PlanRecord, ProgressRecord, EpochRecord, StepBreakdown, CheckpointRecord,
                            EndRecord, SummaryRecord>;

/// Where records go: a file, a live page, … One that shows only some kinds passes over the others.
class RecordSink {
 public:
  virtual ~RecordSink() = default;
  /// `time_s` is that of the record, in seconds since 1970. Throws Error when it cannot keep it.
  virtual void add(const Record& record, double time_s) = 0;
};

/// Appends each record to a file as a line of JSON, with its kind under "record" and the time under "time".
std::unique_ptr<RecordSink> json_lines(const std::string& file);

/// Sends records to all its sinks, in their order; without one it records nothing. One thread at a time.
class RecordWriter {
 public:
  void add_sink(std::unique_ptr<RecordSink> sink) { sinks_.push_back(std::move(sink)); }
  void add(const Record& record);

 private:
  std::vector<std::unique_ptr<RecordSink>> sinks_;
};

}  // namespace tutti
