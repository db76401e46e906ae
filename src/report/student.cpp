// Student's distribution through the regularized incomplete beta function I_x(a, b), computed by its continued fraction
// (Abramowitz and Stegun, 26.5.8 and 26.7.1) with Lentz's method.
#include <algorithm>
#include <cmath>
#include <limits>

#include "report/statistics.h"

namespace tutti {
namespace {

double beta_fraction(double a, double b, double x) {
  constexpr int kMostTerms = 500;
  constexpr double kTiny = 1e-300;
  const auto not_zero = [](double value) { return std::abs(value) < kTiny ? kTiny : value; };
  double c = 1;
  double d = 1 / not_zero(1 - (a + b) * x / (a + 1));
  double result = d;
  for (int m = 1; m <= kMostTerms; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / not_zero(1 + even * d);
    c = not_zero(1 + even / c);
    result *= d * c;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / not_zero(1 + odd * d);
    c = not_zero(1 + odd / c);
    result *= d * c;
    if (std::abs(d * c - 1) < std::numeric_limits<double>::epsilon()) break;
  }
  return result;
}

double incomplete_beta(double a, double b, double x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  const double front =
      std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) + b * std::log1p(-x));
  // The fraction converges quickly on this side of the mean only; the other side follows by symmetry.
  return x < (a + 1) / (a + b + 2) ? front * beta_fraction(a, b, x) / a : 1 - front * beta_fraction(b, a, 1 - x) / b;
}

constexpr double kNearlyNormal = 1e6;  // degrees of freedom from which on the normal distribution is as good

}  // namespace

double student_two_sided(double t, double freedom) {
  if (std::isnan(t) || !(freedom > 0)) return 1;
  if (freedom > kNearlyNormal) return std::erfc(std::abs(t) / std::sqrt(2.0));
  return incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t));
}

double student_quantile(double probability, double freedom) {
  const double tail = 2 * (1 - probability);
  double low = 0, high = 1;
  while (student_two_sided(high, freedom) > tail && high < 1e12) high *= 2;
  for (int i = 0; i < 200 && high - low > 1e-12 * high; ++i) {
    const double middle = (low + high) / 2;
    (student_two_sided(middle, freedom) > tail ? low : high) = middle;
  }
  return (low + high) / 2;
}

}  // namespace tutti
