#include "sim/fit.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tutti {
namespace {

TEST(Fit, FindsTheParametersThatMadeTheData) {
  const auto model = [](const std::vector<double>& p, double n) { return p[0] + n * p[1]; };
  const std::vector<double> truth = {3e-4, 2e-9};
  const Residuals residuals = [&](const std::vector<double>& p) {
    std::vector<double> all;
    for (const double n : {1e3, 1e4, 1e5, 1e6, 1e7}) all.push_back(std::log(model(p, n) / model(truth, n)));
    return all;
  };
  const Fit fit = fit_parameters({{"startup", 1e-5, 1e-7, 1e-2}, {"per byte", 1e-8, 1e-11, 1e-6}}, residuals, 1e-6);
  EXPECT_NEAR(fit.parameters[0].value, truth[0], truth[0] * 1e-3);
  EXPECT_NEAR(fit.parameters[1].value, truth[1], truth[1] * 1e-3);
  EXPECT_LT(fit.rms, 1e-4);
  EXPECT_TRUE(fit.parameters[0].is_identifiable());
}

TEST(Fit, SaysWhatTheDataDoNotTellAndLeavesItWhereItWas) {
  // Only the product of the two shows in the data, and the third one not at all.
  const Residuals residuals = [](const std::vector<double>& p) {
    std::vector<double> all;
    for (int i = 0; i < 6; ++i) all.push_back(std::log(p[0] * p[1] / 6) + (i % 2 == 0 ? 0.01 : -0.01));
    return all;
  };
  const Fit fit = fit_parameters({{"a", 1, 1e-3, 1e3}, {"b", 1, 1e-3, 1e3}, {"c", 7, 1e-3, 1e3}}, residuals);
  EXPECT_NEAR(fit.parameters[0].value * fit.parameters[1].value, 6, 0.05);
  EXPECT_NEAR(fit.parameters[2].value, 7, 1e-6);
  EXPECT_FALSE(fit.parameters[0].is_identifiable());
  EXPECT_FALSE(fit.parameters[2].is_identifiable());
}

TEST(Fit, StaysWithinBounds) {
  const Residuals residuals = [](const std::vector<double>& p) { return std::vector<double>{std::log(p[0] / 100)}; };
  const Fit fit = fit_parameters({{"a", 2, 1, 10}}, residuals);
  EXPECT_NEAR(fit.parameters[0].value, 10, 1e-6);
  EXPECT_TRUE(fit.parameters[0].at_bound);
}

}  // namespace
}  // namespace tutti
