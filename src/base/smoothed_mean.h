#pragma once

#include <cmath>
#include <cstdint>
#include <optional>

namespace tutti {

/// The mean of numbers that come one after the other, of which older ones count less: what came `span` numbers ago
/// counts 1/e of the newest.
class SmoothedMean {
 public:
  explicit SmoothedMean(double span) : span_(span) {}

  /// `count` numbers of which the mean is known.
  void add(double mean, int64_t count = 1) {
    const double keep = std::exp(-static_cast<double>(count) / span_);
    sum_ = keep * sum_ + (1 - keep) * mean;
    weight_ = keep * weight_ + (1 - keep);
  }
  /// None before anything has come.
  std::optional<double> value() const { return weight_ > 0 ? std::optional<double>(sum_ / weight_) : std::nullopt; }

 private:
  double span_;
  double sum_ = 0, weight_ = 0;  // the weight grows to 1: so the first numbers count in full
};

}  // namespace tutti
