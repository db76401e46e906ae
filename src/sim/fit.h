#pragma once

#include <functional>
#include <string>
#include <vector>

namespace tutti {

/// Something to be found: a positive number between two bounds.
struct FitParameter {
  std::string name;
  double start = 1;
  double lower = 1e-12;
  double upper = 1e12;
};

struct FittedParameter {
  double value = 0;
  double uncertainty = 0;  // standard deviation of its logarithm; infinite where the data do not tell
  bool at_bound = false;
  bool is_identifiable() const { return uncertainty < 1 && !at_bound; }
};

struct Fit {
  std::vector<FittedParameter> parameters;
  double rms = 0;  // of the residuals
  int evaluations = 0;
};

/// Residuals for parameter values, of the same length each time.
using Residuals = std::function<std::vector<double>(const std::vector<double>&)>;

/// Least squares by Levenberg and Marquardt over the logarithms of the parameters, derivatives by differences. A weak
/// pull towards the start (`pull` per e-fold) keeps what the data do not tell where it was.
Fit fit_parameters(const std::vector<FitParameter>& parameters, const Residuals& residuals, double pull = 0.005,
                   int most_iterations = 40);

}  // namespace tutti
