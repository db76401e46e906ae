#include "engine/strategy_search.h"

#include <gtest/gtest.h>

#include <map>

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

/// Runs steps that take what `step_s` says of the current candidate; counts them by strategy.
template <typename StepSeconds>
std::map<std::string, int> run(StrategySearch& search, int steps, StepSeconds step_s) {
  std::map<std::string, int> ran;
  double in_window_s = 0;
  for (int step = 0; step < steps; ++step) {
    ++ran[search.current().strategy];
    const double seconds = step_s(search.current().strategy);
    in_window_s += seconds;
    const bool window_ends = search.step_done();
    if (search.window_begins()) in_window_s = 0;
    if (!window_ends) continue;
    search.window_took(in_window_s);
    in_window_s = 0;
  }
  return ran;
}

TEST(StrategySearch, KeepsTheFastest) {
  StrategySearch search = search_among({"a", "b", "c"});
  const std::map<std::string, double> step_s = {{"a", 0.011}, {"b", 0.010}, {"c", 0.0105}};
  run(search, 200, [&](const std::string& name) { return step_s.at(name); });
  EXPECT_TRUE(search.is_over());
  EXPECT_EQ(search.current().strategy, "b");
  EXPECT_NEAR(search.current().step_s(), 0.010, 1e-9);
}

TEST(StrategySearch, TriesWhatIsClearlySlowerOnlyOnce) {
  StrategySearch search = search_among({"slow", "fast", "nearly"});
  const std::map<std::string, double> step_s = {{"slow", 0.020}, {"fast", 0.010}, {"nearly", 0.0102}};
  run(search, 200, [&](const std::string& name) { return step_s.at(name); });
  EXPECT_EQ(search.candidates()[0].measured_s.size(), 1U);
  EXPECT_EQ(search.candidates()[1].measured_s.size(), 6U);
  EXPECT_EQ(search.candidates()[2].measured_s.size(), 6U);
}

TEST(StrategySearch, LeavesTheFirstStepsAfterAChangeOut) {
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

TEST(StrategySearch, IsNotMisledByOneDisturbedWindow) {
  StrategySearch search = search_among({"a", "b"});
  int step = 0;
  // In the second round, something else slows the better one down.
  run(search, 200, [&](const std::string& name) {
    ++step;
    return name == "b" ? (step > 21 && step < 29 ? 0.0115 : 0.010) : 0.0105;
  });
  EXPECT_EQ(search.current().strategy, "b");
}

TEST(StrategySearch, PrefersTheCandidateThatTheSimulationLikesWhereTheyAreEqual) {
  StrategySearch search = search_among({"liked", "equal"});
  run(search, 200, [&](const std::string& name) { return name == "equal" ? 0.00995 : 0.010; });
  EXPECT_EQ(search.current().strategy, "liked");
}

TEST(StrategySearch, OfOneCandidateIsOverAfterOneWindow) {
  StrategySearch search = search_among({"only"});
  run(search, 7, [](const std::string&) { return 0.01; });
  EXPECT_TRUE(search.is_over());
}

TEST(StrategySearch, SeesThatStepsHaveChangedForGood) {
  SearchOptions options;
  options.watch_steps = 10;
  StrategySearch search = search_among({"a"}, options);
  double step_s = 0.010;
  const auto take = [&](const std::string&) { return step_s; };
  run(search, 7, take);
  ASSERT_TRUE(search.is_over());
  run(search, 30, take);
  EXPECT_FALSE(search.has_drifted());
  step_s = 0.013;
  run(search, 10, take);
  EXPECT_FALSE(search.has_drifted()) << "after one window";
  run(search, 10, take);
  EXPECT_TRUE(search.has_drifted());
}

TEST(StrategySearch, BeginsAWindowAnewWhenDisturbed) {
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
