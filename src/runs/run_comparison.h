#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "runs/run_facts.h"

namespace tutti {

/// An option that is not the same in all runs; "" in one that does not record it.
struct DifferentOption {
  std::string name;
  std::vector<std::string> texts;  // one per run
};

struct LossesAt {
  double samples = 0;
  std::vector<double> losses;
};

/// Runs side by side. Losses are interpolated between what was recorded, at samples that all have seen: so runs compare
/// whose batch, ranks or strategy differ.
struct RunComparison {
  std::vector<RunFacts> runs;
  std::vector<DifferentOption> options;
  std::string losses_from;  // "progress" or "epoch" records; "" where the runs have no losses in common
  std::vector<LossesAt> losses;
  std::optional<double> common_loss;         // the lowest that all have come to
  std::vector<double> common_loss_s;         // when each did, in seconds since it began
  std::vector<std::optional<double>> rates;  // samples/s: after the warm-up, if all say so, else over all steps
  bool is_rate_steady = false;
  std::optional<bool> has_same_weights;  // of runs that are finished
};
RunComparison compare_runs(std::vector<RunFacts> runs);

/// What `tutti runs compare` prints; runs are called A, B, …
std::string describe(const RunComparison& comparison);
nlohmann::json to_json(const RunComparison& comparison);

}  // namespace tutti
