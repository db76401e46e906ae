#include "train/best_test.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/names.h"
#include "tutti/error.h"

namespace tutti {
namespace {

constexpr const char* kLoss = "loss";

double value_of(const EvalCounts& test, const std::string& metric) {
  if (metric == kLoss) return test.loss();
  for (const Metric& one : test.metrics)
    if (one.name == metric) return one.value();
  throw Error("the test has no '{}'", metric);
}

}  // namespace

BestTest::BestTest(const std::string& metric, SampleKind kind) : metric_(metric) {
  std::vector<std::string> names;
  for (const Metric& one : nothing_counted(kind).metrics) names.push_back(one.name);
  if (metric_.empty()) metric_ = names.at(0);
  names.emplace_back(kLoss);
  if (!contains(names, metric_)) throw UsageError("--keep-best: {}", unknown_name("metric", metric_, names));
}

bool BestTest::add(const EvalCounts& test, const TrainProgress& progress) {
  const double value = value_of(test, metric_);
  const bool is_better = std::isfinite(value) && (!has_any() || (metric_ == kLoss ? value < value_ : value > value_));
  if (!is_better) {
    ++tests_since_;
    return false;
  }
  value_ = value;
  step_ = progress.step;
  epoch_ = progress.samples_in_epoch == 0 ? progress.epoch : progress.epoch + 1;
  tests_since_ = 0;
  return true;
}

std::string BestTest::text() const {
  std::string name = metric_;
  std::replace(name.begin(), name.end(), '_', ' ');
  return fmt::format("{} {:.4f} after epoch {}", name, value_, epoch_);
}

nlohmann::json BestTest::state() const {
  if (metric_.empty()) return {};
  return {{"metric", metric_}, {"value", value_}, {"step", step_}, {"epoch", epoch_}, {"tests_since", tests_since_}};
}

void BestTest::restore(const nlohmann::json& state) {
  if (!state.is_object() || state.at("metric") != metric_) return;
  value_ = state.at("value").get<double>();
  step_ = state.at("step").get<int64_t>();
  epoch_ = state.at("epoch").get<int64_t>();
  tests_since_ = state.at("tests_since").get<int64_t>();
}

}  // namespace tutti
