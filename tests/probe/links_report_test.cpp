#include "probe/links_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace tutti {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

/// An operation that takes 10 µs + 1 ns per byte.
ProbedOp known_op(ProbeOp op) {
  ProbedOp result{op, {}, {}};
  std::vector<LinkSample> samples;
  for (const int64_t bytes : probe_sizes(1 << 20)) {
    const double seconds = 1e-5 + 1e-9 * static_cast<double>(bytes);
    result.points.push_back({bytes, seconds, seconds, seconds, 5});
    samples.push_back({bytes, seconds});
  }
  result.cost = fit_link_cost(samples);
  return result;
}

ProbedLevel known_level(const std::string& name, std::vector<int> ranks) {
  return {name, "mpi", std::move(ranks), 0, {known_op(ProbeOp::all_reduce), known_op(ProbeOp::send)}};
}

TEST(ProbeSizes, GrowByFourUpToTheLargest) {
  EXPECT_THAT(probe_sizes(5000), ElementsAre(1024, 4096, 5000));
  EXPECT_THAT(probe_sizes(1024), ElementsAre(1024));
  EXPECT_EQ(probe_sizes(64 << 20).size(), 9U);
}

TEST(BusFactor, IsThatOfNcclTests) {
  EXPECT_DOUBLE_EQ(bus_factor(ProbeOp::all_reduce, 4), 1.5);
  EXPECT_DOUBLE_EQ(bus_factor(ProbeOp::reduce_scatter, 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor(ProbeOp::all_gather, 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor(ProbeOp::broadcast, 4), 1);
}

TEST(Summarize, GivesMedianAndQuartiles) {
  const ProbePoint point = summarize(8, {5, 1, 4, 2, 3});
  EXPECT_EQ(point.median_s, 3);
  EXPECT_EQ(point.lower_s, 2);
  EXPECT_EQ(point.upper_s, 4);
  EXPECT_EQ(point.count, 5);
}

TEST(Levels, OfOneNodeAreItsRanks) {
  const auto levels = levels_to_probe({{"a", {0, 1, 2}}}, "shm");
  ASSERT_EQ(levels.size(), 1U);
  EXPECT_EQ(levels[0].name, "node");
  EXPECT_THAT(levels[0].ranks, ElementsAre(0, 1, 2));
}

TEST(Levels, OfSeveralNodesAreInsideBetweenAndAll) {
  const auto levels = levels_to_probe({{"a", {0, 2}}, {"b", {1, 3}}}, "mpi");
  ASSERT_EQ(levels.size(), 4U);
  EXPECT_EQ(levels[0].transport, "shm");
  EXPECT_THAT(levels[0].ranks, ElementsAre(0, 2));
  EXPECT_EQ(levels[1].transport, "mpi");
  EXPECT_EQ(levels[2].name, "nodes");
  EXPECT_THAT(levels[2].ranks, ElementsAre(0, 1));
  EXPECT_THAT(levels[3].ranks, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(levels_to_probe({{"a", {0}}, {"b", {1}}}, "mpi").size(), 1U);
  for (const ProbedLevel& level : levels_to_probe({{"a", {0, 2}}, {"b", {1, 3}}}, "nccl"))
    EXPECT_EQ(level.transport, "nccl") << level.name;
}

TEST(RingBound, OfAllRanksIsThatOfTheLinkBetweenNodes) {
  std::vector<ProbedLevel> levels = {known_level("nodes", {0, 2}), known_level("all", {0, 1, 2, 3})};
  levels[1].ops.clear();
  set_link_bandwidths(levels, 0);
  const double link = (1 << 20) / (1e-5 + 1e-9 * (1 << 20));
  EXPECT_DOUBLE_EQ(levels[1].link_bytes_per_s, link);
  EXPECT_DOUBLE_EQ(ring_bound_s(levels[1], ProbeOp::all_reduce, 1000), 1.5 * 1000 / link);
  set_link_bandwidths(levels, 8);
  EXPECT_DOUBLE_EQ(ring_bound_s(levels[1], ProbeOp::all_reduce, 1000), 1.5e-6);
}

TEST(LinksFile, ReadsAsThePlannersLinks) {
  LinksReport report;
  report.nodes = {{"a", {0}}, {"b", {1}}};
  report.levels = {known_level("nodes", {0, 1})};
  const nlohmann::json json = to_json(report);
  const Links links = json.get<Links>();
  EXPECT_NEAR(links.all_reduce.startup_s, 1e-5, 1e-9);
  EXPECT_NEAR(links.all_reduce.per_byte_s, 1e-9, 1e-13);
  EXPECT_EQ(json.at("format"), "tutti-links-1");
  EXPECT_EQ(json.at("levels").at(0).at("operations").at(1).at("operation"), "send");
  const auto op = json.at("levels").at(0).at("operations").at(0).get<ProbedOp>();
  EXPECT_EQ(op.points.size(), probe_sizes(1 << 20).size());
}

TEST(Table, ShowsBandwidthsAndTheBoundBesideThem) {
  std::vector<ProbedLevel> levels = {known_level("nodes", {0, 1, 2, 3})};
  set_link_bandwidths(levels, 8);  // 1 ns per byte
  const std::string text = describe(levels[0]);
  EXPECT_THAT(text, AllOf(HasSubstr("between nodes, one rank of each: 4 ranks over mpi"), HasSubstr("8 Gbit/s")));
  // 1 MB in 1.0586 ms: 0.991 GB/s, and 1.5 times that; the bound is 1.573 ms.
  EXPECT_THAT(text, HasSubstr("0.991       1.486     1.57 ms    149 %"));
}

TEST(Sparkline, ScalesToTheLargest) {
  EXPECT_EQ(sparkline({0.1, 4, 8}), "▁▄█");
  EXPECT_EQ(sparkline({}), "");
  EXPECT_EQ(sparkline({0, 0}), "▁▁");
}

TEST(Plot, DrawsACurvePerOperationIntoTheKindOfFileAskedFor) {
  const std::string program = gnuplot_program({known_level("node", {0, 1})}, "it's.png");
  EXPECT_THAT(program, AllOf(HasSubstr("set terminal pngcairo"), HasSubstr("/it\\047s.png\"\n"),
                             HasSubstr("\"all_reduce (node, mpi)\""), HasSubstr("\"send (node, mpi)\"")));
  EXPECT_THAT(gnuplot_program({}, "a.svg"), AllOf(HasSubstr("set terminal svg"), Not(HasSubstr("png"))));
}

}  // namespace
}  // namespace tutti
