#include "probe/pairs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/median.h"

namespace tutti {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<Node> nodes_of(int nodes, int ranks_each) {
  std::vector<Node> all;
  for (int i = 0; i < nodes; ++i) {
    all.push_back({"n" + std::to_string(i), {}});
    for (int j = 0; j < ranks_each; ++j) all.back().ranks.push_back(i * ranks_each + j);
  }
  return all;
}

/// All pairs, both ways, as fast as the slower of the two nodes' links; 10 GB/s inside a node.
std::vector<PairFigures> figures(const std::vector<Node>& nodes, const std::vector<double>& link) {
  const auto node_of = node_of_ranks(nodes);
  std::vector<PairFigures> pairs;
  for (std::size_t a = 0; a < node_of.size(); ++a)
    for (std::size_t b = 0; b < node_of.size(); ++b)
      if (a != b)
        pairs.push_back({static_cast<int>(a), static_cast<int>(b), 1e-5,
                         node_of[a] == node_of[b] ? 10e9 : std::min(link[node_of[a]], link[node_of[b]])});
  return pairs;
}

TEST(PairRounds, MeasureEveryPairOfASmallJobAlone) {
  const auto rounds = pair_rounds(nodes_of(2, 2));
  EXPECT_EQ(rounds.size(), 6U);
  for (const auto& round : rounds) EXPECT_EQ(round.size(), 1U);
}

TEST(PairRounds, OfALargeJobLetAllNodesMeetInDisjointPairs) {
  for (const int count : {5, 16}) {
    const auto nodes = nodes_of(count, 3);
    std::set<RankPair> met;
    for (const auto& round : pair_rounds(nodes)) {
      std::set<int> busy;
      for (const auto& [a, b] : round) {
        EXPECT_TRUE(busy.insert(a).second && busy.insert(b).second) << "a rank twice in a round";
        EXPECT_TRUE(met.insert({a, b}).second) << "a pair twice";
      }
    }
    EXPECT_EQ(met.size(), static_cast<std::size_t>(count * (count - 1) / 2 + 2 * count));
  }
}

TEST(SlowLinks, AreNoneWhereAllAreAlike) {
  const auto nodes = nodes_of(4, 2);
  EXPECT_THAT(find_slow_links(figures(nodes, {1e8, 1e8, 0.9e8, 1.1e8}), nodes), IsEmpty());
}

TEST(SlowLinks, NameTheNodeEvenIfMostPairsHaveItAtOneEnd) {
  const auto nodes = nodes_of(3, 1);
  const auto slow = find_slow_links(figures(nodes, {1.2e8, 1.2e8, 1.2e7}), nodes);
  ASSERT_EQ(slow.size(), 1U);
  EXPECT_EQ(slow[0].host, "n2");
  EXPECT_EQ(slow[0].text, "the link of n2: at most 0.096 Gbit/s, under half of the 0.96 Gbit/s usual between nodes");
}

TEST(SlowLinks, OfTwoNodesShowAgainstWhatIsExpected) {
  const auto nodes = nodes_of(2, 2);
  const auto pairs = figures(nodes, {1.2e8, 1.2e7});
  EXPECT_THAT(find_slow_links(pairs, nodes), IsEmpty());
  const auto slow = find_slow_links(pairs, nodes, 1.25e8);
  ASSERT_EQ(slow.size(), 1U);  // one line, though four pairs of ranks share the link
  EXPECT_THAT(slow[0].text,
              AllOf(HasSubstr("n0 (rank 0) to n1 (rank 2)"), HasSubstr("0.096 Gbit/s"), HasSubstr("--link-gbps")));
}

TEST(SlowLinks, NameASinglePairBetweenGoodNodes) {
  const auto nodes = nodes_of(4, 1);
  auto pairs = figures(nodes, {1e8, 1e8, 1e8, 1e8});
  for (PairFigures& pair : pairs)
    if (pair.from == 1 && pair.to == 3) pair.bytes_per_s = 2e7;
  const auto slow = find_slow_links(pairs, nodes);
  ASSERT_EQ(slow.size(), 1U);
  EXPECT_THAT(slow[0].text, HasSubstr("n1 (rank 1) to n3 (rank 3)"));
  EXPECT_EQ(slow[0].host, "");
}

TEST(SlowLinks, InsideANodeCompareWithOtherPairsInside) {
  const auto nodes = nodes_of(1, 4);
  auto pairs = figures(nodes, {0});
  pairs[0].bytes_per_s = 1e9;
  const auto slow = find_slow_links(pairs, nodes);
  ASSERT_EQ(slow.size(), 1U);
  EXPECT_THAT(slow[0].text, HasSubstr("usual inside a node"));
}

TEST(Median, IsTheMiddleOne) {
  EXPECT_EQ(lower_median({}), 0);
  EXPECT_EQ(lower_median({3, 1, 2}), 2);
  EXPECT_EQ(lower_median({4, 1, 2, 3}), 2);
}

}  // namespace
}  // namespace tutti
