#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "train/course.h"
#include "tutti/metrics.h"

namespace tutti {

/// The best test of a run so far, by one metric. Tests are counted on all ranks alike, so all come to the same.
class BestTest {
 public:
  BestTest() = default;
  /// `metric`: "loss", which should be small, or one that is counted for this kind of samples; "": the first of those.
  /// Throws UsageError for another.
  BestTest(const std::string& metric, SampleKind kind);

  /// Whether this test is better than all before it. A loss that is no number never is.
  bool add(const EvalCounts& test, const TrainProgress& progress);

  const std::string& metric() const { return metric_; }
  bool has_any() const { return step_ >= 0; }
  double value() const { return value_; }
  int64_t step() const { return step_; }
  int64_t epoch() const { return epoch_; }
  int64_t tests_since() const { return tests_since_; }
  /// "accuracy 0.9876 after epoch 3"
  std::string text() const;

  /// For a checkpoint.
  nlohmann::json state() const;
  /// From one; nothing is taken from another metric's, or from null.
  void restore(const nlohmann::json& state);

 private:
  std::string metric_;
  double value_ = 0;
  int64_t step_ = -1, epoch_ = 0;  // -1: there was none
  int64_t tests_since_ = 0;
};

}  // namespace tutti
