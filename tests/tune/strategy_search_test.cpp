#include "tune/strategy_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace tutti {
namespace {

StrategySearch search_among(const std::vector<std::string>& names, const SearchOptions& options = {}) {
  std::vector<SearchCandidate> candidates;
  for (const std::string& name : names) {
    SearchCandidate candidate;
    candidate.strategy = name;
    candidates.push_back(candidate);
  }
  return {candidates, options};
}

class SearchForAStrategy : public testing::Test {
 protected:
  /// Runs steps that take what `step_s` says of the current candidate; counts them by strategy.
  template <typename StepSeconds>
  std::map<std::string, int> run(StrategySearch& search, int steps, StepSeconds step_s) {
    std::map<std::string, int> ran;
    for (int step = 0; step < steps; ++step) {
      ++ran[search.current().strategy];
      now_s_ += step_s(search.current().strategy);
      if (search.step_done(now_s_)) search.window_took(search.window_step_s());
    }
    return ran;
  }

  double now_s_ = 0;
};

TEST_F(SearchForAStrategy, KeepsTheFastest) {
  StrategySearch search = search_among({"a", "b", "c"});
  const std::map<std::string, double> step_s = {{"a", 0.011}, {"b", 0.010}, {"c", 0.0105}};
  run(search, 200, [&](const std::string& name) { return step_s.at(name); });
  EXPECT_TRUE(search.is_over());
  EXPECT_EQ(search.current().strategy, "b");
  EXPECT_NEAR(search.current().step_s(), 0.010, 1e-9);
}

TEST_F(SearchForAStrategy, TriesWhatIsClearlySlowerOnlyOnce) {
  StrategySearch search = search_among({"slow", "fast", "nearly"});
  const std::map<std::string, double> step_s = {{"slow", 0.020}, {"fast", 0.010}, {"nearly", 0.0102}};
  run(search, 200, [&](const std::string& name) { return step_s.at(name); });
  EXPECT_EQ(search.candidates()[0].measured_s.size(), 1U);
  EXPECT_EQ(search.candidates()[1].measured_s.size(), 4U);
  EXPECT_EQ(search.candidates()[2].measured_s.size(), 4U);
}

TEST_F(SearchForAStrategy, LeavesTheFirstStepsAfterAChangeOut) {
  StrategySearch search = search_among({"a", "b"});
  std::string before;
  run(search, 200, [&](const std::string& name) {
    const bool is_new = name != before;
    before = name;
    return is_new ? 1.0 : name == "a" ? 0.010 : 0.011;
  });
  EXPECT_EQ(search.current().strategy, "a");
  EXPECT_NEAR(search.current().step_s(), 0.010, 1e-9);
}

TEST_F(SearchForAStrategy, IsNotMisledByOneDisturbedWindow) {
  StrategySearch search = search_among({"a", "b"});
  int disturbed = 0;
  // In the second round, something else slows the better one down.
  run(search, 300, [&](const std::string& name) {
    if (name == "a") return 0.0105;
    const bool is_second = search.candidates()[1].measured_s.size() == 1;
    disturbed += is_second ? 1 : 0;
    return is_second ? 0.0115 : 0.010;
  });
  EXPECT_GE(disturbed, 5);
  EXPECT_EQ(search.current().strategy, "b");
}

TEST_F(SearchForAStrategy, ComparesWithinRoundsSinceAMachineHasMoods) {
  StrategySearch search = search_among({"a", "b"});
  // Slower from the third round on, and `b`, the better one, is disturbed in the first: by medians of their own, `a`
  // won.
  run(search, 300, [&](const std::string& name) {
    const std::size_t round =
        std::min(search.candidates()[0].measured_s.size(), search.candidates()[1].measured_s.size());
    const double mood = round >= 2 ? 1.2 : 1;
    return name == "a" ? 0.010 * mood : 0.0097 * mood * (round == 0 ? 1.3 : 1);
  });
  EXPECT_TRUE(search.is_over());
  EXPECT_EQ(search.current().strategy, "b");
}

TEST_F(SearchForAStrategy, IsFairToTheLastWhileAMachineBecomesSlower) {
  StrategySearch search = search_among({"a", "b", "c", "d", "e"});
  double slower = 1;
  run(search, 1500, [&](const std::string& name) { return (name == "e" ? 0.0097 : 0.010) * (slower *= 1.0015); });
  EXPECT_TRUE(search.is_over());
  EXPECT_EQ(search.current().strategy, "e");
}

TEST_F(SearchForAStrategy, TakesLongerWhereStepsScatterAndSpendsItOnTheBest) {
  const std::map<std::string, double> step_s = {
      {"a", 0.0104}, {"b", 0.0100}, {"c", 0.0101}, {"d", 0.0103}, {"e", 0.0102}};
  std::mt19937 source(1);
  const auto search_with = [&](double scatter) {
    StrategySearch search = search_among({"a", "b", "c", "d", "e"});
    std::uniform_real_distribution<double> factor(1, 1 + scatter);
    run(search, 1000, [&](const std::string& name) { return step_s.at(name) * factor(source); });
    EXPECT_TRUE(search.is_over());
    std::vector<std::size_t> windows;
    for (const SearchCandidate& candidate : search.candidates()) windows.push_back(candidate.measured_s.size());
    std::sort(windows.begin(), windows.end());
    return windows;
  };
  EXPECT_EQ(search_with(0), (std::vector<std::size_t>{4, 4, 4, 4, 4}));
  const std::vector<std::size_t> windows = search_with(0.5);
  EXPECT_LE(windows[0], 8U);
  EXPECT_GT(windows[3], 8U);
}

TEST_F(SearchForAStrategy, TakesNoNoticeOfASingleLongStep) {
  StrategySearch search = search_among({"a", "b"});
  int step = 0;
  run(search, 200, [&](const std::string& name) {
    return (name == "b" ? 0.0097 : 0.010) * (name == "b" && ++step % 5 == 0 ? 3 : 1);
  });
  EXPECT_EQ(search.current().strategy, "b");
}

TEST_F(SearchForAStrategy, TimesStepsTogetherWhereADeviceMayBeBehind) {
  SearchOptions options;
  options.window_steps = options.part_steps = 6;
  StrategySearch search = search_among({"a", "b"}, options);
  int step = 0;
  // Most steps of `a` are only queued, until one has to wait for all.
  run(search, 200, [&](const std::string& name) { return name == "b" ? 0.010 : ++step % 6 == 0 ? 0.061 : 0.001; });
  EXPECT_EQ(search.current().strategy, "b");
}

TEST_F(SearchForAStrategy, EndsInTimeForAShortRun) {
  SearchOptions options;
  options.steps = 60;
  StrategySearch search = search_among({"a", "b"}, options);
  std::mt19937 source(1);
  std::uniform_real_distribution<double> seconds(0.01, 0.02);
  run(search, 60, [&](const std::string&) { return seconds(source); });
  EXPECT_TRUE(search.is_over());
}

TEST_F(SearchForAStrategy, PrefersTheCandidateThatTheSimulationLikesWhereTheyAreEqual) {
  StrategySearch search = search_among({"liked", "equal"});
  run(search, 200, [&](const std::string& name) { return name == "equal" ? 0.00995 : 0.010; });
  EXPECT_EQ(search.current().strategy, "liked");
}

TEST_F(SearchForAStrategy, OfOneCandidateIsOverAfterOneWindow) {
  StrategySearch search = search_among({"only"});
  run(search, 7, [](const std::string&) { return 0.01; });
  EXPECT_TRUE(search.is_over());
}

TEST_F(SearchForAStrategy, SeesThatStepsHaveChangedForGood) {
  SearchOptions options;
  options.watch_steps = 10;
  StrategySearch search = search_among({"a"}, options);
  double step_s = 0.010;
  const auto take = [&](const std::string&) { return step_s; };
  run(search, 7, take);
  ASSERT_TRUE(search.is_over());
  run(search, 33, take);
  EXPECT_FALSE(search.has_drifted());
  step_s = 0.013;
  run(search, 11, take);
  EXPECT_FALSE(search.has_drifted()) << "after one window";
  run(search, 11, take);
  EXPECT_TRUE(search.has_drifted());
}

TEST_F(SearchForAStrategy, TakesNoPauseForAChange) {
  SearchOptions options;
  options.watch_steps = 30;
  StrategySearch search = search_among({"a"}, options);
  run(search, 7, [](const std::string&) { return 0.01; });
  ASSERT_TRUE(search.is_over());
  int step = 0;
  run(search, 200, [&](const std::string&) { return ++step % 30 == 0 ? 8.0 : 0.01; });
  EXPECT_FALSE(search.has_drifted());
}

TEST_F(SearchForAStrategy, BeginsAWindowAnewWhenDisturbed) {
  SearchOptions options;
  StrategySearch search = search_among({"a", "b"}, options);
  run(search, 6, [](const std::string&) { return 0.01; });
  search.disturb();
  run(search, 6, [](const std::string&) { return 0.01; });
  EXPECT_TRUE(search.candidates()[0].measured_s.empty());
  run(search, 1, [](const std::string&) { return 0.01; });
  EXPECT_EQ(search.candidates()[0].measured_s.size(), 1U);
}

}  // namespace
}  // namespace tutti
