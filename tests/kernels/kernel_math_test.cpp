// What kernels compute for one element, run on a CPU.

#include <gtest/gtest.h>

#include <cmath>
#include <utility>
#include <vector>

#include "kernels/activation_math.h"
#include "kernels/batch_norm_math.h"
#include "kernels/dropout_math.h"
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

TEST(LambRule, TakesStepsAsLongAsTheTensorRelativeToItsDirection) {
  const LambRule rule{0.9, 0.999, 1e-6, 0.1};
  float values[2] = {3, -4}, means[2] = {}, squares[2] = {};
  double expected[2] = {3, -4}, m[2] = {}, v[2] = {};
  for (int step = 1; step <= 20; ++step) {
    const auto factors = rule.factors(0.01, step, 0.5F);
    double value_sum = 0, direction_sum = 0, direction[2];
    double expected_values = 0, expected_directions = 0;
    for (int i = 0; i < 2; ++i) {
      const double gradient = gradient_at(step + 3 * i);
      rule.average(factors, static_cast<float>(gradient), means[i], squares[i]);
      value_sum += values[i] * values[i];
      direction_sum += std::pow(rule.direction(factors, values[i], means[i], squares[i]), 2);
      m[i] = 0.9 * m[i] + 0.1 * 0.5 * gradient;
      v[i] = 0.999 * v[i] + 0.001 * 0.25 * gradient * gradient;
      direction[i] =
          m[i] / (1 - std::pow(0.9, step)) / (std::sqrt(v[i] / (1 - std::pow(0.999, step))) + 1e-6) + 0.1 * expected[i];
      expected_values += expected[i] * expected[i];
      expected_directions += direction[i] * direction[i];
    }
    for (int i = 0; i < 2; ++i) {
      values[i] -=
          rule.rate(factors, value_sum, direction_sum) * rule.direction(factors, values[i], means[i], squares[i]);
      expected[i] -= 0.01 * std::sqrt(expected_values) / std::sqrt(expected_directions) * direction[i];
    }
  }
  for (int i = 0; i < 2; ++i) EXPECT_NEAR(values[i], expected[i], 1e-4);
  EXPECT_FLOAT_EQ(rule.rate(rule.factors(0.01, 1, 1), 0, 5), 0.01F) << "a tensor of zeros";
}

TEST(BatchNorm, FindsMomentsOfValuesFarFromZero) {
  const double values[] = {1000.25, 1000.5, 999.75, 1001};
  float sum = 0, squares = 0;
  for (const double value : values) {
    const float less = static_cast<float>(value) - 1000.25F;
    sum += less;
    squares += less * less;
  }
  const Moments moments = moments_of(sum, squares, 1000.25, 4);
  EXPECT_DOUBLE_EQ(moments.mean, 1000.375);
  EXPECT_DOUBLE_EQ(moments.variance, (0.125 * 0.125 + 0.125 * 0.125 + 0.625 * 0.625 + 0.625 * 0.625) / 4);
  EXPECT_EQ(moments_of(0.1F * 3, 0.01F * 3, 5, 3).variance >= 0, true) << "equal values";
  EXPECT_FLOAT_EQ(running_average(2, 4, 0.1), 2.2F);
}

TEST(BatchNorm, HasTheGradientOfItsValue) {
  // A small change of one of three values, against a loss that weighs their normalized values.
  const double x[] = {0.5, -1, 2}, loss[] = {0.3, -0.7, 1.1}, weight = 1.5, bias = 0.2;
  const auto normalized = [&](const double* of, double* to) {
    const double mean = (of[0] + of[1] + of[2]) / 3;
    double variance = 0;
    for (int i = 0; i < 3; ++i) variance += (of[i] - mean) * (of[i] - mean) / 3;
    for (int i = 0; i < 3; ++i) to[i] = (of[i] - mean) / std::sqrt(variance);
    return std::make_pair(mean, 1 / std::sqrt(variance));
  };
  double hats[3], sum = 0, products = 0;
  const auto [mean, inverse_deviation] = normalized(x, hats);
  for (int i = 0; i < 3; ++i) sum += loss[i], products += loss[i] * hats[i];
  const NormChannel channel{static_cast<float>(mean), static_cast<float>(weight * inverse_deviation),
                            static_cast<float>(bias)};
  const NormGradient gradient(static_cast<float>(mean), static_cast<float>(inverse_deviation),
                              static_cast<float>(weight), static_cast<float>(sum), static_cast<float>(products),
                              1.0F / 3);
  for (int i = 0; i < 3; ++i) {
    EXPECT_NEAR(channel(static_cast<float>(x[i])), weight * hats[i] + bias, 1e-6);
    double losses[2] = {};
    for (const int side : {0, 1}) {
      double moved[] = {x[0], x[1], x[2]}, to[3];
      moved[i] += side == 0 ? -1e-5 : 1e-5;
      normalized(moved, to);
      for (int j = 0; j < 3; ++j) losses[side] += loss[j] * (weight * to[j] + bias);
    }
    EXPECT_NEAR(gradient(static_cast<float>(loss[i]), static_cast<float>(x[i])), (losses[1] - losses[0]) / 2e-5, 1e-5);
  }
}

TEST(BatchNorm, PassesWhatIsNotBelowZeroAndNotANumber) {
  EXPECT_TRUE(relu_passes(1e-30F));
  EXPECT_TRUE(relu_passes(std::nanf("")));
  EXPECT_FALSE(relu_passes(0));
  EXPECT_FALSE(relu_passes(-1));
}

TEST(Gather, PutsTheChannelsOfAPixelSideBySide) {
  // Two channels of three pixels: a0 a1 a2 b0 b1 b2 become a0 b0 a1 b1 a2 b2.
  std::vector<int64_t> from;
  for (int64_t to = 0; to < 6; ++to) from.push_back(source_element(to, 6, 2));
  EXPECT_EQ(from, (std::vector<int64_t>{0, 3, 1, 4, 2, 5}));
  for (int64_t to = 0; to < 5; ++to) EXPECT_EQ(source_element(to, 5, 1), to);
}

TEST(Philox, GivesThePublishedNumbersOfSevenRounds) {
  // Random123's kat_vectors, "philox4x32 7".
  const RandomBits zeros = philox(0, 0, 0);
  const uint32_t expected[4] = {0x5f6fb709, 0x0d893f64, 0x4f121f81, 0x4f730a48};
  for (int i = 0; i < 4; ++i) EXPECT_EQ(zeros.word[i], expected[i]) << i;
  const RandomBits ones = philox(~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0});
  const uint32_t expected_ones[4] = {0x5207ddc2, 0x45165e59, 0x4d8ee751, 0x8c52f662};
  for (int i = 0; i < 4; ++i) EXPECT_EQ(ones.word[i], expected_ones[i]) << i;
}

TEST(DropoutRule, KeepsItsShareOfEachElementOfADraw) {
  constexpr int kDraws = 20000;
  for (const double share : {0.1, 0.5, 0.9}) {
    const DropoutRule rule = dropout_rule(share);
    EXPECT_NEAR(rule.scale * (1 - share), 1, 1e-4);
    int kept[DropoutRule::kElementsPerDraw] = {};
    for (uint64_t place = 0; place < kDraws; ++place) {
      const RandomBits bits = philox(17, 4, place);
      for (int i = 0; i < DropoutRule::kElementsPerDraw; ++i) kept[i] += rule.keeps(bits, i) ? 1 : 0;
    }
    const double spread = std::sqrt(kDraws * share * (1 - share));
    for (const int count : kept) EXPECT_NEAR(count, kDraws * (1 - share), 5 * spread) << share;
  }
}

TEST(DropoutRule, DropsNothingOrAllAtItsEnds) {
  const RandomBits none{{0, 0, 0, 0}};
  EXPECT_TRUE(dropout_rule(0).keeps(none, 3));
  EXPECT_EQ(dropout_rule(0).scale, 1);
  EXPECT_FALSE(dropout_rule(1).keeps(none, 3));
  EXPECT_EQ(dropout_rule(1).scale, 0);
}

TEST(Gelu, FollowsTheErrorFunctionAndItsDerivative) {
  for (int i = -1200; i <= 1200; ++i) {
    const double x = 0.01 * i, phi = 0.5 * std::erfc(-x / std::sqrt(2.0));
    const double slope = phi + x * std::exp(-0.5 * x * x) / std::sqrt(2 * std::acos(-1.0));
    const auto at = static_cast<float>(x);
    const double bound = 2e-7 * std::max(1.0, std::fabs(x));
    EXPECT_NEAR(Gelu::value(at), x * phi, bound) << x;
    EXPECT_NEAR(Gelu::derivative(at), slope, 2 * bound) << x;
    EXPECT_NEAR(ShortGelu::value(at), x * phi, bound) << x;
    EXPECT_NEAR(ShortGelu::derivative(at), slope, 2 * bound) << x;
  }
}

}  // namespace
}  // namespace tutti
