#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runlog/run_report.h"

namespace tutti {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

/// Of two ranks on two nodes, which trained for ten seconds and waited so long for each other.
EpochRecord epoch_of(double exposed_0, double exposed_1) {
  EpochRecord epoch;
  for (const double exposed_s : {exposed_0, exposed_1}) {
    RankEpoch rank;
    rank.train_s = 10;
    rank.comm_exposed_s = exposed_s;
    rank.samples = 100;
    epoch.ranks.push_back(rank);
  }
  Node first, second;
  first.host = "n0";
  first.ranks = {0};
  second.host = "n1";
  second.ranks = {1};
  sum_up(epoch, {first, second});
  return epoch;
}

TEST(EpochLines, AreOneWhereRanksAreAlike) {
  EXPECT_THAT(epoch_lines(epoch_of(1, 1.5), "", /*all=*/false), SizeIs(1));
  EXPECT_THAT(epoch_lines(epoch_of(1, 1.5), "", /*all=*/true), SizeIs(5));
  EXPECT_FALSE(ranks_differ({}));
}

TEST(EpochLines, TellOfEachRankWhereOneHoldsTheOthersUp) {
  // Rank 0 is busy for nine seconds, for five of which rank 1 waits.
  const std::vector<std::string> lines = epoch_lines(epoch_of(1, 6), "", /*all=*/false);
  ASSERT_THAT(lines, SizeIs(5));
  EXPECT_THAT(lines[2], HasSubstr("rank 1: 100 samples"));
  EXPECT_THAT(lines[4], HasSubstr("node n1: 1 rank"));
}

}  // namespace
}  // namespace tutti
