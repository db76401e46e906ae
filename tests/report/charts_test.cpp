#include "report/charts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pointwise;

TEST(AxisMarks, AreRoundAndFew) {
  EXPECT_THAT(axis_marks(0, 10, false), Pointwise(DoubleNear(1e-9), {0.0, 2.0, 4.0, 6.0, 8.0, 10.0}));
  EXPECT_THAT(axis_marks(0.93, 0.98, false), Pointwise(DoubleNear(1e-9), {0.93, 0.94, 0.95, 0.96, 0.97, 0.98}));
  EXPECT_THAT(axis_marks(-1, 1, false), Pointwise(DoubleNear(1e-9), {-1.0, -0.5, 0.0, 0.5, 1.0}));
  EXPECT_THAT(axis_marks(90, 1100, true), Pointwise(DoubleNear(1e-9), {100.0, 200.0, 500.0, 1000.0}));
  EXPECT_TRUE(axis_marks(3, 3, false).empty());
  for (double high = 1.3; high < 1e6; high *= 1.37) {
    EXPECT_LE(axis_marks(0, high, false).size(), 8u) << high;
    EXPECT_GE(axis_marks(0, high, false).size(), 2u) << high;
    EXPECT_LE(axis_marks(0.01, high, true).size(), 8u) << high;
  }
}

TEST(AxisMarks, AreThinnedToEightWithTheLastAmongThem) {
  std::vector<double> many;
  for (int i = 1; i <= 20; ++i) many.push_back(i);
  const std::vector<double> few = thinned(many);
  EXPECT_LE(few.size(), 8u);
  EXPECT_EQ(few.back(), 20);
  EXPECT_THAT(thinned({1, 2, 4}), ElementsAre(1, 2, 4));
}

TEST(LabelsBesideLines, StandApartAndInOrder) {
  const std::vector<double> places = spread_labels({0.5, 0.51, 0.52, 0.99, 1.0}, 0.1);
  for (std::size_t i = 0; i < places.size(); ++i) {
    EXPECT_GE(places[i], 0);
    EXPECT_LE(places[i], 1 + 1e-9);
    if (i > 0) {
      EXPECT_GE(places[i], places[i - 1] + 0.1 - 1e-9);
    }
  }
  EXPECT_THAT(spread_labels({0.1, 0.9}, 0.1), ElementsAre(0.1, 0.9));
}

TEST(LineChart, NamesItsLinesAtTheirEndsAndNotInABox) {
  LineChart chart;
  chart.lines = {{"bsp", {{1, 10, 0}, {2, 15, 1}}, false}, {"ideal", {{1, 10, 0}, {2, 20, 0}}, true}};
  const std::string program = chart_program(chart);
  EXPECT_THAT(program, HasSubstr("unset key\n"));
  EXPECT_THAT(program, HasSubstr("set label \"bsp\" at graph 1.02, graph 0."));
  EXPECT_THAT(program, HasSubstr("set label \"ideal\" at graph"));
  EXPECT_THAT(program, HasSubstr("with yerrorlines"));
}

TEST(BarChart, AddsUpPartsAndMarksWhatIsToBeComparedWith) {
  const std::string program = chart_program(BarChart{"ms", {"a", "b"}, {{"one", {1, 2}, 0}}, 4, "ideal"});
  EXPECT_THAT(program, HasSubstr("0 0 1 1 3 3 0\n"));  // place, from and to of both, the sum, no interval
  EXPECT_THAT(program, HasSubstr("ideal\" at screen 0.04, screen 0."));
  EXPECT_THAT(program, Not(HasSubstr("xerrorbars")));
}

}  // namespace
}  // namespace tutti
