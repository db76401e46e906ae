#include "report/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/median.h"

namespace tutti {
namespace {

TEST(Student, HasTheQuantilesOfTheTables) {
  EXPECT_NEAR(student_quantile(0.975, 1), 12.7062, 1e-4);
  EXPECT_NEAR(student_quantile(0.975, 2), 4.3027, 1e-4);
  EXPECT_NEAR(student_quantile(0.975, 4), 2.7764, 1e-4);
  EXPECT_NEAR(student_quantile(0.975, 10), 2.2281, 1e-4);
  EXPECT_NEAR(student_quantile(0.95, 30), 1.6973, 1e-4);
  EXPECT_NEAR(student_quantile(0.975, std::numeric_limits<double>::infinity()), 1.9600, 1e-4);
}

TEST(Student, TailsOfOneDegreeOfFreedomAreCauchys) {
  for (const double t : {0.1, 1.0, 3.0, 50.0})
    EXPECT_NEAR(student_two_sided(t, 1), 1 - 2 / M_PI * std::atan(t), 1e-12) << t;
  EXPECT_DOUBLE_EQ(student_two_sided(0, 5), 1);
}

TEST(Estimate, IsOfMeanMedianDeviationAndInterval) {
  const Estimate result = estimate({1, 2, 3, 4, 10});
  EXPECT_EQ(result.n, 5u);
  EXPECT_DOUBLE_EQ(result.mean, 4);
  EXPECT_DOUBLE_EQ(result.median, 3);
  EXPECT_NEAR(result.deviation, std::sqrt(50.0 / 4), 1e-12);
  EXPECT_NEAR(result.half_width(), 2.7764 * std::sqrt(50.0 / 4 / 5), 1e-3);
}

TEST(Estimate, OfOneObservationHasNoInterval) {
  EXPECT_TRUE(std::isinf(estimate({7}).half_width()));
  EXPECT_EQ(estimate({}).n, 0u);
}

TEST(Median, IsTheMeanOfTheMiddleTwoOfAnEvenNumber) {
  EXPECT_DOUBLE_EQ(median({4, 1, 3, 2}), 2.5);
  EXPECT_DOUBLE_EQ(median({5, 1, 3}), 3);
}

TEST(Compare, FindsAClearDifferenceAndNoneInNoise) {
  const Estimate a = estimate({100, 101, 99, 100, 100}), b = estimate({110, 111, 109, 110, 110});
  const Ratio clear = compare(a, b);
  EXPECT_NEAR(clear.ratio, 1.1, 1e-12);
  EXPECT_LT(clear.p, 0.001);
  EXPECT_GT(clear.low, 1.08);
  EXPECT_LT(clear.high, 1.12);
  const Ratio noise = compare(estimate({80, 120, 95, 105, 101}), estimate({85, 125, 96, 104, 110}));
  EXPECT_GT(noise.p, 0.05);
  EXPECT_LT(noise.low, 1);
  EXPECT_GT(noise.high, 1);
}

TEST(Compare, AgreesWithWelchsTestWhereLogarithmsAreNearlyLinear) {
  // Means 10000 and 10003, variances 1 and 4, five each: t = 3 / sqrt(1/5 + 4/5) = 3, Welch's degrees of freedom 5.88.
  Estimate a, b;
  a.n = b.n = 5;
  a.mean = 10000;
  b.mean = 10003;
  a.freedom = b.freedom = 4;
  a.standard_error = std::sqrt(1.0 / 5);
  b.standard_error = std::sqrt(4.0 / 5);
  EXPECT_NEAR(compare(a, b).p, student_two_sided(3, 1.0 / (0.04 / 4 + 0.64 / 4)), 1e-4);
}

TEST(Compare, KnowsNothingWithoutSpreadAndEverythingOfExactFigures) {
  EXPECT_TRUE(std::isinf(compare(estimate({1}), estimate({2})).high));
  EXPECT_DOUBLE_EQ(compare(estimate({1}), estimate({2})).p, 1);
  EXPECT_DOUBLE_EQ(compare(estimate({2, 2}), estimate({3, 3})).p, 0);
  EXPECT_DOUBLE_EQ(compare(estimate({2, 2}), estimate({2, 2})).p, 1);
}

TEST(AdjustForMany, IsHolms) {
  const std::vector<double> adjusted = adjust_for_many({0.01, 0.04, 0.03, 0.005});
  EXPECT_DOUBLE_EQ(adjusted[3], 0.02);
  EXPECT_DOUBLE_EQ(adjusted[0], 0.03);
  EXPECT_DOUBLE_EQ(adjusted[2], 0.06);
  EXPECT_DOUBLE_EQ(adjusted[1], 0.06);  // never below a smaller one's
}

/// 100 steps of about 10 ms, the first `slow` of which take longer and longer the earlier they are.
std::vector<double> steps(std::size_t slow) {
  std::vector<double> result;
  const double jitter[] = {0, 1e-4, 1e-4, 1e-4, 2e-4};  // any five have the same median, also without one of them
  for (std::size_t i = 0; i < 100; ++i)
    result.push_back(0.010 + jitter[i % 5] + (i < slow ? 0.002 * static_cast<double>(slow - i) : 0));
  return result;
}

TEST(WarmUp, IsFoundInGroupsOfFive) {
  EXPECT_EQ(find_warm_up(steps(0)), 0u);
  EXPECT_EQ(find_warm_up(steps(10)), 10u);
  EXPECT_EQ(find_warm_up(steps(20)), 20u);
}

TEST(WarmUp, IsNotASingleSlowStep) {
  std::vector<double> one_slow = steps(0);
  one_slow[22] = 1;
  EXPECT_EQ(find_warm_up(one_slow), 0u);
}

TEST(WarmUp, IsNeverMoreThanHalfNorFoundInFewSteps) {
  EXPECT_LE(find_warm_up(steps(90)), 50u);
  EXPECT_EQ(find_warm_up({9, 1, 1, 1, 1, 1, 1, 1, 1}), 0u);
}

TEST(RateOf, IsSamplesOverTheTimeOfAllStepsAfterWarmUp) {
  Cell cell;
  cell.samples_per_step = 64;
  cell.step_s = steps(10);
  const CellRate rate = rate_of(cell);
  EXPECT_EQ(rate.dropped, 10u);
  EXPECT_EQ(rate.steps, 90u);
  double seconds = 0;
  for (std::size_t i = 10; i < 100; ++i) seconds += cell.step_s[i];
  EXPECT_NEAR(rate.rate.mean, 64 * 90 / seconds, 1e-9);
  EXPECT_EQ(rate.rate.n, 10u);
  cell.warmup_steps = 40;  // declared, and more
  EXPECT_EQ(rate_of(cell).dropped, 40u);
  cell.warmup_steps = 1000;
  EXPECT_EQ(rate_of(cell).steps, 1u);
}

TEST(RateOf, TakesWhatIsStatedWhereThereAreNoSteps) {
  Cell cell;
  EXPECT_EQ(rate_of(cell).rate.n, 0u);
  cell.throughput = StatedRate{100, 5};
  EXPECT_TRUE(rate_of(cell).is_stated);
  EXPECT_NEAR(rate_of(cell).rate.half_width(), 1.96 * 5, 1e-3);
  cell.throughput->deviation.reset();
  EXPECT_TRUE(std::isinf(rate_of(cell).rate.half_width()));
}

}  // namespace
}  // namespace tutti
