#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/cluster.h"
#include "sim/fit.h"
#include "sim/own_engine.h"
#include "tutti/plan.h"

namespace tutti {

/// One training run of ours as its records have it.
struct RecordedRun {
  Plan plan;             // the newest
  std::string settings;  // its sizes as options of the command line
  Profile profile;
  std::optional<Links> links;
  std::optional<double> batch;            // samples per rank and micro-batch
  std::optional<double> step_s;           // the median of its steps after warm-up, where it came to its end
  std::map<std::string, double> tried_s;  // steps of what `auto` tried, by strategy and settings with a space between
  CandidateRules rules;                   // what could have run in the plan's place
};
/// Throws Error naming the file when it holds no plan or is damaged.
RecordedRun read_recorded_run(const std::filesystem::path& file);

/// A training run of ours, or several alike: what its steps took, and under which plan.
struct MeasuredRun {
  std::string strategy;
  Plan plan;
  double step_s = 0;  // the median of its steps after warm-up; of several runs, the median of those
  int runs = 1;
  double spread = 0;  // from the shortest of them to the longest, over step_s
};

/// Runs that differ in nothing but the strategy. One of them has measured profile and links for all.
struct RunGroup {
  std::string model, transport, network;  // network: "" where links were taken as they are
  int64_t batch = 0;
  int ranks = 1;
  Profile profile;
  Links links;
  std::vector<MeasuredRun> runs;

  std::string place() const { return network.empty() ? transport : transport + ", " + network; }
};

/// Every run with several ranks under these folders. Throws UsageError where there is none, Error naming the file that
/// cannot be read. Groups without measured links are left out and named in `left_out`.
std::vector<RunGroup> read_run_groups(const std::vector<std::filesystem::path>& folders,
                                      std::vector<std::string>& left_out);

/// One run, predicted.
struct RunPrediction {
  const RunGroup* group = nullptr;
  const MeasuredRun* run = nullptr;
  double step_s = 0;
  double error() const { return step_s / run->step_s - 1; }
};
/// Simulates every run of the group. Runs of strategy `auto` choose for themselves and are left out.
std::vector<RunPrediction> predict_runs(const RunGroup& group, const Software& software);

/// What our engine costs on one place (transport and network), found by fitting; fields of Software.
struct EngineCosts {
  std::string place;
  Software software;
  Fit fit;  // of kEngineKnobs, in their order
};
struct EngineKnob {
  const char* name;
  const char* unit;
  double scale, start, lower, upper;
  double Software::*field;
};
const std::vector<EngineKnob>& engine_knobs();
EngineCosts fit_engine_costs(const std::vector<const RunGroup*>& groups);

}  // namespace tutti
