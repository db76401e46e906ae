#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "record/cell.h"

namespace tutti {

/// The t that a variable of Student's distribution stays below with this probability (0.5 to 1), for `freedom` > 0.
double student_quantile(double probability, double freedom);

/// How likely |t| or more is under Student's distribution.
double student_two_sided(double t, double freedom);

/// What is known of a quantity from some observations of it.
struct Estimate {
  std::size_t n = 0;
  double mean = 0;
  double median = 0;
  double deviation = 0;       // sample standard deviation; 0 for one observation
  double standard_error = 0;  // of the mean; infinite where nothing is known of it
  double freedom = 0;         // degrees of, for intervals; infinite: a normal distribution

  /// Half of the 95 % interval of the mean (Student's t); infinite for one observation.
  double half_width() const;
};
Estimate estimate(const std::vector<double>& values);

/// A difference counts when it would be as large by chance in fewer cases than this.
constexpr double kSignificant = 0.05;

/// b compared with a.
struct Ratio {
  double ratio = 1;          // of means, b / a
  double low = 0, high = 0;  // its 95 % interval (Welch, on logarithms); 0 to infinity where unknown
  double p = 1;              // how likely a difference as large is if there is none
};
Ratio compare(const Estimate& a, const Estimate& b);

/// p-values made fit for being looked at together (Holm): the chance of one false alarm among all stays below 5 %.
std::vector<double> adjust_for_many(const std::vector<double>& p_values);

/// How many steps at the beginning are warm-up, by rule: MSER, on medians of 5 steps so that a single slow step decides
/// nothing. It drops the first d groups, d at most half of them, for which the mean of the rest is known best, that is
/// the sum of squared deviations from it divided by the square of their number is smallest. Under 10 steps: none.
std::size_t find_warm_up(const std::vector<double>& step_s);

/// Samples per second of a cell, and what its figure rests on.
struct CellRate {
  Estimate rate;            // over batches of steps: neighbours are alike, so single ones would promise too much
  std::size_t steps = 0;    // used
  std::size_t dropped = 0;  // as warm-up: what was declared or what was found, whichever is more
  bool is_stated = false;   // by the record, which has no steps
};
/// n = 0 where the record does not say.
CellRate rate_of(const Cell& cell);

}  // namespace tutti
