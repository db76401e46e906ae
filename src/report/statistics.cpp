#include "report/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/median.h"

namespace tutti {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kConfidence = 0.975;     // both sides: 95 %
constexpr std::size_t kGroup = 5;         // steps whose median is looked at when warm-up is searched
constexpr std::size_t kFewestSteps = 10;  // in which warm-up can be told from the rest
constexpr std::size_t kBatches = 10;      // of steps, for the spread within a run

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace

double Estimate::half_width() const {
  if (standard_error == 0 || !std::isfinite(standard_error)) return standard_error;
  return standard_error * student_quantile(kConfidence, freedom);
}

Estimate estimate(const std::vector<double>& values) {
  Estimate result;
  result.n = values.size();
  if (values.empty()) return result;
  result.mean = mean(values);
  result.median = median(values);
  result.standard_error = kInfinity;
  if (values.size() == 1) return result;
  double squares = 0;
  for (const double value : values) squares += (value - result.mean) * (value - result.mean);
  result.freedom = static_cast<double>(values.size() - 1);
  result.deviation = std::sqrt(squares / result.freedom);
  result.standard_error = result.deviation / std::sqrt(static_cast<double>(values.size()));
  return result;
}

Ratio compare(const Estimate& a, const Estimate& b) {
  Ratio result;
  if (!(a.mean > 0) || !(b.mean > 0)) return {1, 0, kInfinity, 1};
  result.ratio = b.mean / a.mean;
  result.high = kInfinity;
  // To first order the logarithm of a mean has the relative variance of the mean.
  const double va = std::pow(a.standard_error / a.mean, 2), vb = std::pow(b.standard_error / b.mean, 2);
  const double variance = va + vb;
  if (!std::isfinite(variance)) return result;
  const double distance = std::log(result.ratio);
  if (variance == 0) {  // exact figures, as a simulator's
    result.low = result.high = result.ratio;
    result.p = distance == 0 ? 1 : 0;
    return result;
  }
  const auto share = [](double v, double freedom) {
    return std::isfinite(freedom) && freedom > 0 ? v * v / freedom : 0;
  };
  const double shares = share(va, a.freedom) + share(vb, b.freedom);
  const double freedom = shares > 0 ? variance * variance / shares : kInfinity;
  const double error = std::sqrt(variance);
  const double reach = error * student_quantile(kConfidence, freedom);
  result.low = std::exp(distance - reach);
  result.high = std::exp(distance + reach);
  result.p = student_two_sided(distance / error, freedom);
  return result;
}

std::vector<double> adjust_for_many(const std::vector<double>& p_values) {
  std::vector<std::size_t> order(p_values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return p_values[a] < p_values[b]; });
  std::vector<double> adjusted(p_values.size());
  double largest = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    largest = std::max(largest, std::min(1.0, p_values[order[i]] * static_cast<double>(order.size() - i)));
    adjusted[order[i]] = largest;
  }
  return adjusted;
}

std::size_t find_warm_up(const std::vector<double>& step_s) {
  if (step_s.size() < kFewestSteps) return 0;
  std::vector<double> groups;
  for (std::size_t i = 0; i + kGroup <= step_s.size(); i += kGroup)
    groups.push_back(median(
        {step_s.begin() + static_cast<std::ptrdiff_t>(i), step_s.begin() + static_cast<std::ptrdiff_t>(i + kGroup)}));
  // From the end, so that sums over what is left need one pass.
  double sum = 0, squares = 0, best = kInfinity;
  std::size_t best_start = 0;
  const double origin = groups.back();  // near the values: squares of large numbers would lose their differences
  for (std::size_t left = 1; left <= groups.size(); ++left) {
    const std::size_t start = groups.size() - left;
    const double value = groups[start] - origin;
    sum += value;
    squares += value * value;
    if (start > groups.size() / 2) continue;
    const auto n = static_cast<double>(left);
    const double score = std::max(0.0, squares - sum * sum / n) / (n * n);
    if (score <= best) {  // the longest of equals
      best = score;
      best_start = start;
    }
  }
  return best_start * kGroup;
}

CellRate rate_of(const Cell& cell) {
  CellRate result;
  if (cell.step_s.empty() || cell.samples_per_step <= 0) {
    if (!cell.throughput) return result;
    result.is_stated = true;
    result.rate.n = 1;
    result.rate.mean = result.rate.median = cell.throughput->mean;
    result.rate.deviation = cell.throughput->deviation.value_or(0);
    // Of how many observations is not stated: the deviation is then all that is known of the mean's error.
    result.rate.standard_error = cell.throughput->deviation.value_or(kInfinity);
    result.rate.freedom = kInfinity;
    return result;
  }
  const std::size_t all = cell.step_s.size();
  result.dropped =
      std::max(find_warm_up(cell.step_s), static_cast<std::size_t>(std::max<int64_t>(0, cell.warmup_steps)));
  if (result.dropped >= all) result.dropped = all - 1;
  result.steps = all - result.dropped;
  const std::size_t batches = std::min(kBatches, result.steps);
  std::vector<double> rates;
  double total_s = 0;
  for (std::size_t i = 0; i < batches; ++i) {
    const std::size_t begin = result.dropped + result.steps * i / batches;
    const std::size_t end = result.dropped + result.steps * (i + 1) / batches;
    double seconds = 0;
    for (std::size_t step = begin; step < end; ++step) seconds += cell.step_s[step];
    total_s += seconds;
    if (seconds > 0) rates.push_back(cell.samples_per_step * static_cast<double>(end - begin) / seconds);
  }
  result.rate = estimate(rates);
  if (total_s > 0) result.rate.mean = cell.samples_per_step * static_cast<double>(result.steps) / total_s;
  const double median_s =
      median({cell.step_s.begin() + static_cast<std::ptrdiff_t>(result.dropped), cell.step_s.end()});
  if (median_s > 0) result.rate.median = cell.samples_per_step / median_s;
  return result;
}

}  // namespace tutti
