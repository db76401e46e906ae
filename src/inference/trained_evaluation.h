#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "inference/class_report.h"
#include "inference/trained_model.h"

namespace tutti {

/// A model on the test side of its data.
struct TrainedEvaluation {
  EvalCounts counts;                   // as training's own tests count
  std::optional<Confusion> confusion;  // where samples have classes
};

/// `told` hears how many batches are done. Throws Error.
TrainedEvaluation evaluate_trained(TrainedModel& trained, const std::function<void(int64_t done, int64_t all)>& told);

/// What a person reads, without the end of its last line: the loss and all metrics, then tables by class.
std::string describe(const TrainedModel& trained, const TrainedEvaluation& result);
/// The same, and every count.
nlohmann::json to_json(const TrainedModel& trained, const TrainedEvaluation& result);
/// A row per class with its scores and its row of the confusion; without classes, a row per metric.
std::string csv(const TrainedEvaluation& result);

}  // namespace tutti
