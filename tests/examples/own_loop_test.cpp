// A program from outside, which includes <tutti/…> alone and trains.
#include <gtest/gtest.h>

#include "launch/launcher.h"

namespace tutti {
namespace {

int run_own_loop(int ranks, const std::string& strategy) {
  LaunchOptions options;
  options.ranks = ranks;
  options.command = {TUTTI_OWN_LOOP, strategy};
  return launch_ranks(options);
}

TEST(OwnLoop, TrainsAlone) { EXPECT_EQ(run_own_loop(1, "wfbp"), 0); }

TEST(OwnLoop, TrainsOnSeveralRanksUnderAnyStrategy) {
  for (const char* const strategy : {"zero1", "auto"}) EXPECT_EQ(run_own_loop(2, strategy), 0) << strategy;
}

TEST(OwnLoop, EndsWithAMessageForAStrategyThatDoesNotExist) { EXPECT_EQ(run_own_loop(2, "nonsense"), 1); }

TEST(Collectives, WorkWithoutLibtorchAloneAndOnSeveralRanks) {
  for (const int ranks : {1, 3}) {
    LaunchOptions options;
    options.ranks = ranks;
    options.command = {TUTTI_COLLECTIVES};
    EXPECT_EQ(launch_ranks(options), 0) << ranks;
  }
}

}  // namespace
}  // namespace tutti
