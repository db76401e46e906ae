#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "comm/nodes.h"
#include "train/evaluation.h"

namespace tutti {

/// What an epoch came to. `ranks`: what each says of itself, RankTimes::describe() and its samples and loss.
struct EpochResult {
  int64_t epoch = 0;
  int64_t step = 0;
  std::vector<nlohmann::json> ranks;
  const EvalCounts* test = nullptr;  // null: not tested
  std::vector<Node> nodes;
};

/// For people.
std::vector<std::string> epoch_lines(const EpochResult& result);
/// For records.
nlohmann::json epoch_record(const EpochResult& result);

/// The part of a run's summary that follows from what its ranks say: times are the slowest rank's.
nlohmann::json summary_of_ranks(const std::vector<nlohmann::json>& ranks, int64_t samples, int64_t steady_samples);

}  // namespace tutti
