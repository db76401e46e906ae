#include "sim/message_cost.h"

#include <gtest/gtest.h>

#include <utility>

#include "some_cluster.h"

namespace tutti {
namespace {

Transfer message(Operation operation, int64_t bytes) {
  Transfer transfer;
  transfer.operation = operation;
  transfer.end = bytes / static_cast<int64_t>(sizeof(float));
  transfer.server = 0;
  return transfer;
}

double seconds(Operation operation, int64_t bytes, const Cluster& cluster, int ranks, int servers = 1) {
  Plan plan;
  plan.servers = servers;
  return seconds_alone(message(operation, bytes), plan, cluster, lay_out(cluster, ranks));
}

TEST(MessageCost, OfARingIsALaunchAndTwoPMinusOneOverPOfItsBytes) {
  Cluster cluster = some_cluster(1, 4);
  cluster.software.launch_s = 70e-6;
  EXPECT_NEAR(seconds(Operation::all_reduce, 8'000'000, cluster, 4), 70e-6 + 1.5 * 8e6 / 10e9, 1e-12);
}

TEST(MessageCost, OfAShortMessageIsTheStartUpsAroundTheRing) {
  EXPECT_NEAR(seconds(Operation::all_reduce, 64, some_cluster(1, 4), 4), 1.5 * 4 * 5e-6, 1e-12);
  EXPECT_NEAR(seconds(Operation::all_reduce, 64, some_cluster(2, 4), 8), 1.75 * (2 * 50e-6 + 6 * 5e-6), 1e-12);
}

TEST(MessageCost, OfARingOverNodesGoesAtThePaceOfTheNetwork) {
  EXPECT_NEAR(seconds(Operation::all_reduce, 8'000'000, some_cluster(2, 4), 8), 1.75 * 8e6 / 1e9, 1e-12);
}

TEST(MessageCost, OfReduceScatterAndAllGatherTogetherIsThatOfAnAllReduce) {
  const Cluster cluster = some_cluster(4, 2);
  EXPECT_NEAR(
      seconds(Operation::reduce_scatter, 4'000'000, cluster, 8) + seconds(Operation::all_gather, 4'000'000, cluster, 8),
      seconds(Operation::all_reduce, 4'000'000, cluster, 8), 1e-12);
}

TEST(MessageCost, OfAHierarchyPassesEachLevelOnce) {
  Cluster cluster = some_cluster(4, 2);
  cluster.collective = Collective::hierarchical;
  const double inside_s = 0.5 * (2 * 5e-6 + 8e6 / 10e9), between_s = 1.5 * (4 * 50e-6 + 8e6 / 1e9);
  EXPECT_NEAR(seconds(Operation::all_reduce, 8'000'000, cluster, 8), 2 * inside_s + between_s, 1e-12);
}

TEST(MessageCost, OfMovingInsideANodeRisesBesideComputation) {
  Cluster cluster = some_cluster(4, 2);
  cluster.collective = Collective::hierarchical;
  cluster.software.transfer_slowdown = 0.25;
  const auto stages = stages_of(message(Operation::all_reduce, 8'000'000), Plan{}, cluster, lay_out(cluster, 8));
  // Half of the bytes move, 25 % slower; the start-up takes as long as ever.
  EXPECT_NEAR(stages.front().beside_s, 5e-6 + 1.25 * 0.5 * 8e6 / 10e9, 1e-12);
  EXPECT_NEAR(stages.front().seconds, 5e-6 + 0.5 * 8e6 / 10e9, 1e-12);
}

TEST(MessageCost, TakesATreeForShortMessagesAmongManyAndNotForLongOnes) {
  Cluster cluster = some_cluster(64, 1), ring = cluster;
  cluster.collective = Collective::automatic;
  EXPECT_LT(seconds(Operation::all_reduce, 4096, cluster, 64), seconds(Operation::all_reduce, 4096, ring, 64) / 3);
  EXPECT_LE(seconds(Operation::all_reduce, 1 << 28, cluster, 64), seconds(Operation::all_reduce, 1 << 28, ring, 64));
}

TEST(MessageCost, OfAConnectionThatCannotFillTheLinkFallsWithMoreOfThem) {
  Cluster cluster = some_cluster(4, 1);
  cluster.network.connection_bytes_per_s = 0.25e9;
  const double one = seconds(Operation::all_reduce, 1 << 24, cluster, 4);
  cluster.network.connections = 4;
  const double four = seconds(Operation::all_reduce, 1 << 24, cluster, 4);
  cluster.network.connections = 8;
  EXPECT_GT(one, 3.5 * four);
  EXPECT_DOUBLE_EQ(seconds(Operation::all_reduce, 1 << 24, cluster, 4), four);  // the link is full
}

TEST(MessageCost, OfPushPullPassesWorkerAndServerBothWays) {
  const Cluster cluster = some_cluster(2, 1);
  const double bytes = 4e6;
  // Inside, card, server (two workers send), server, card, inside.
  EXPECT_NEAR(seconds(Operation::push_pull, 4'000'000, cluster, 2, 2),
              2 * (5e-6 + bytes / 10e9) + 4 * 50e-6 + 2 * bytes / 1e9 + 2 * 2 * bytes / 1e9, 1e-12);
}

TEST(MessageCost, OfPushPullInsideANodeIsARingsTwoHalves) {
  EXPECT_NEAR(seconds(Operation::push_pull, 8'000'000, some_cluster(1, 4), 4), 2 * (5e-6 + 0.75 * 8e6 / 10e9), 1e-12);
}

TEST(MessageCost, OfPushPullTakesTurnsUpAndDownWhereDevicesOfANodeSumInARing) {
  const auto ends = [](const Cluster& cluster, int ranks) {
    const auto stages = stages_of(message(Operation::push_pull, 4096), Plan{}, cluster, lay_out(cluster, ranks));
    return std::pair(stages.front().resource, stages.back().resource);
  };
  const auto [up, down] = ends(some_cluster(2, 4), 8);
  EXPECT_EQ(up, down);
  const auto [to_host, from_host] = ends(some_cluster(2, 1), 2);
  EXPECT_NE(to_host, from_host);
}

TEST(MessageCost, AsStrategiesSeeItIsStartUpAndBytesOfTheRing) {
  Cluster cluster = some_cluster(2, 4);
  cluster.network.startup_s = cluster.inside.startup_s = 0;
  cluster.software.launch_s = 200e-6;
  const Links links = links_of(cluster, lay_out(cluster, 8), 0);
  EXPECT_NEAR(links.all_reduce.startup_s, 200e-6, 1e-9);
  EXPECT_NEAR(links.all_reduce.per_byte_s, 1.75e-9, 1e-14);
}

}  // namespace
}  // namespace tutti
