// What kernels compute for one element, run on a CPU.

#include <gtest/gtest.h>

#include <vector>

#include "kernels/gather_math.h"
#include "kernels/optimizer_math.h"

namespace tutti {
namespace {

/// Gradients that change sign and size.
double gradient_at(int step) { return 0.3 * step - 0.02 * step * step + 0.5; }

TEST(SgdRule, GoesDownTheScaledGradientAndTheDecay) {
  const SgdRule rule{0, 0.1F, false};
  float value = 2;
  rule.update(rule.factors(0.5, 1, 0.25F), 4, value);
  EXPECT_FLOAT_EQ(value, 2 - 0.5F * (0.25F * 4 + 0.1F * 2));
}

TEST(SgdRule, KeepsMomentumAsTorchDoes) {
  for (const bool nesterov : {false, true}) {
    const SgdRule rule{0.9F, 0.05F, nesterov};
    float value = 1, velocity = 0;
    double expected = 1, momentum = 0;
    for (int step = 1; step <= 50; ++step) {
      rule.update(rule.factors(0.01, step, 1), static_cast<float>(gradient_at(step)), value, velocity);
      const double descent = gradient_at(step) + 0.05 * expected;
      momentum = step == 1 ? descent : 0.9 * momentum + descent;
      expected -= 0.01 * (nesterov ? descent + 0.9 * momentum : momentum);
    }
    EXPECT_NEAR(value, expected, 2e-5) << nesterov;
  }
}

TEST(AdamRule, FollowsTheFormulaOfThePaper) {
  for (const bool decoupled : {false, true}) {
    const AdamRule rule{0.9, 0.999, 1e-8, 0.1, decoupled};
    float value = 1, mean = 0, square = 0;
    double expected = 1, m = 0, v = 0;
    for (int step = 1; step <= 50; ++step) {
      rule.update(rule.factors(0.01, step, 0.5F), static_cast<float>(gradient_at(step)), value, mean, square);
      double gradient = 0.5 * gradient_at(step);
      if (decoupled)
        expected *= 1 - 0.01 * 0.1;
      else
        gradient += 0.1 * expected;
      m = 0.9 * m + 0.1 * gradient;
      v = 0.999 * v + 0.001 * gradient * gradient;
      expected -= 0.01 * (m / (1 - std::pow(0.9, step))) / (std::sqrt(v / (1 - std::pow(0.999, step))) + 1e-8);
    }
    EXPECT_NEAR(value, expected, 1e-5) << decoupled;
  }
}

TEST(Gather, PutsTheChannelsOfAPixelSideBySide) {
  // Two channels of three pixels: a0 a1 a2 b0 b1 b2 become a0 b0 a1 b1 a2 b2.
  std::vector<int64_t> from;
  for (int64_t to = 0; to < 6; ++to) from.push_back(source_element(to, 6, 2));
  EXPECT_EQ(from, (std::vector<int64_t>{0, 3, 1, 4, 2, 5}));
  for (int64_t to = 0; to < 5; ++to) EXPECT_EQ(source_element(to, 5, 1), to);
}

}  // namespace
}  // namespace tutti
