#include "sim/fit.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tutti {
namespace {

using Vector = std::vector<double>;
using Matrix = std::vector<Vector>;

/// Solves a x = b for a symmetric positive definite matrix by Cholesky's method; empty when it is not.
Vector solve(Matrix a, Vector b) {
  const std::size_t n = b.size();
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      double sum = a[i][j];
      for (std::size_t k = 0; k < j; ++k) sum -= a[i][k] * a[j][k];
      if (i == j) {
        if (sum <= 0) return {};
        a[i][i] = std::sqrt(sum);
      } else {
        a[i][j] = sum / a[j][j];
      }
    }
  }
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < i; ++k) b[i] -= a[i][k] * b[k];
    b[i] /= a[i][i];
  }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t k = i + 1; k < n; ++k) b[i] -= a[k][i] * b[k];
    b[i] /= a[i][i];
  }
  return b;
}

double sum_of_squares(const Vector& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return sum;
}

}  // namespace

Fit fit_parameters(const std::vector<FitParameter>& parameters, const Residuals& residuals, double pull,
                   int most_iterations) {
  const std::size_t n = parameters.size();
  Fit fit;
  Vector at(n), start(n), low(n), high(n);
  for (std::size_t i = 0; i < n; ++i) {
    start[i] = at[i] = std::log(parameters[i].start);
    low[i] = std::log(parameters[i].lower);
    high[i] = std::log(parameters[i].upper);
  }
  std::size_t data = 0;
  const auto evaluate = [&](const Vector& logs) {
    Vector values(n);
    for (std::size_t i = 0; i < n; ++i) values[i] = std::exp(logs[i]);
    Vector result = residuals(values);
    ++fit.evaluations;
    data = result.size();
    for (std::size_t i = 0; i < n; ++i) result.push_back(pull * (logs[i] - start[i]));
    return result;
  };

  constexpr double kStep = 1e-2;  // wide enough to see past the kinks of a simulation
  Vector now = evaluate(at);
  double cost = sum_of_squares(now), damping = 1e-2;
  Matrix normal(n, Vector(n)), columns(n);
  const auto differentiate = [&] {
    for (std::size_t i = 0; i < n; ++i) {
      Vector moved = at;
      const double step = at[i] + kStep > high[i] ? -kStep : kStep;
      moved[i] += step;
      columns[i] = evaluate(moved);
      for (std::size_t k = 0; k < now.size(); ++k) columns[i][k] = (columns[i][k] - now[k]) / step;
    }
  };
  const auto product = [](const Vector& a, const Vector& b, std::size_t length) {
    double sum = 0;
    for (std::size_t k = 0; k < length; ++k) sum += a[k] * b[k];
    return sum;
  };
  for (int iteration = 0; iteration < most_iterations; ++iteration) {
    differentiate();
    Vector slope(n);
    for (std::size_t i = 0; i < n; ++i) {
      slope[i] = -product(columns[i], now, now.size());
      for (std::size_t j = 0; j < n; ++j) normal[i][j] = product(columns[i], columns[j], now.size());
    }
    bool improved = false;
    double gained = 0;
    for (int attempt = 0; attempt < 8 && !improved; ++attempt) {
      Matrix damped = normal;
      for (std::size_t i = 0; i < n; ++i) damped[i][i] += damping * (normal[i][i] + 1e-9);
      const Vector step = solve(damped, slope);
      Vector moved = at;
      for (std::size_t i = 0; i < n && !step.empty(); ++i)
        moved[i] = std::clamp(at[i] + std::clamp(step[i], -1.0, 1.0), low[i], high[i]);
      const Vector there = evaluate(moved);
      const double new_cost = sum_of_squares(there);
      improved = new_cost < cost;
      damping *= improved ? 0.3 : 4;
      if (!improved) continue;
      gained = cost - new_cost;
      at = moved;
      now = there;
      cost = new_cost;
    }
    if (!improved || gained < 1e-5 * cost) break;
  }

  // Uncertainty from the curvature of the data alone, without the pull.
  differentiate();
  now.resize(data);
  const double freedom = std::max(1.0, static_cast<double>(data) - static_cast<double>(n));
  const double variance = sum_of_squares(now) / freedom;
  fit.rms = std::sqrt(sum_of_squares(now) / static_cast<double>(std::max<std::size_t>(1, data)));
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j) normal[i][j] = product(columns[i], columns[j], data) + (i == j ? 1e-9 : 0);
  for (std::size_t i = 0; i < n; ++i) {
    Vector unit(n, 0);
    unit[i] = 1;
    const Vector column = solve(normal, unit);
    FittedParameter found;
    found.value = std::exp(at[i]);
    found.uncertainty =
        column.empty() || column[i] <= 0 ? std::numeric_limits<double>::infinity() : std::sqrt(variance * column[i]);
    found.at_bound = at[i] <= low[i] + 1e-6 || at[i] >= high[i] - 1e-6;
    fit.parameters.push_back(found);
  }
  return fit;
}

}  // namespace tutti
