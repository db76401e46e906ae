#include <gtest/gtest.h>

#include <string>

#include "sim/cluster.h"
#include "tutti/error.h"

namespace tutti {
namespace {

const std::string kGood = R"(
name: two
nodes:
  - {count: 2, devices: 4, device: {name: A, tflops: 10, memory_gb_per_s: 600}}
  - {count: 1, devices: 2, device: {name: B, tflops: 20, memory_gb_per_s: 900}}
inside: {gb_per_s: 10, startup_us: 5}
network: {gb_per_s: 1.2, startup_us: 30, duplex: 1.5}
collective: hierarchical
software: {negotiation_us: 100, slowdown: 0.1, unmerge_us: 10, asks_for_sums: true}
)";

std::string refusal(const std::string& text) {
  try {
    parse_cluster(text, "c.yaml");
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

TEST(ClusterFile, GivesFiguresInSecondsAndBytes) {
  const Cluster cluster = parse_cluster(kGood, "c.yaml");
  EXPECT_EQ(cluster.devices(), 10);
  EXPECT_DOUBLE_EQ(cluster.network.bytes_per_s, 1.2e9);
  EXPECT_DOUBLE_EQ(cluster.network.startup_s, 30e-6);
  EXPECT_DOUBLE_EQ(cluster.groups[1].device.flop_per_s, 20e12);
  EXPECT_EQ(cluster.collective, Collective::hierarchical);
  EXPECT_DOUBLE_EQ(cluster.software.negotiation_s, 100e-6);
  EXPECT_DOUBLE_EQ(cluster.software.unmerge_s, 10e-6);
  EXPECT_TRUE(cluster.software.asks_for_sums);
}

TEST(ClusterFile, SaysWhereItIsWrong) {
  EXPECT_NE(refusal(replaced(kGood, "duplex", "dupplex")).find("c.yaml:7: "), std::string::npos)
      << refusal(replaced(kGood, "duplex", "dupplex"));
  EXPECT_NE(refusal(replaced(kGood, "duplex", "dupplex")).find("'duplex'"), std::string::npos);
  EXPECT_NE(refusal(replaced(kGood, "1.2", "fast")).find("'gb_per_s' is a number"), std::string::npos);
  EXPECT_NE(refusal(replaced(kGood, "hierarchical", "star")).find("ring"), std::string::npos);
  EXPECT_NE(refusal("nodes: [").find("not YAML"), std::string::npos);
  EXPECT_NE(refusal("name: empty\n").find("needs nodes"), std::string::npos);
  EXPECT_NE(refusal("just text\n").find("c.yaml"), std::string::npos);
}

TEST(ClusterFile, ThatIsShippedCanBeReadAndLaidOut) {
  const auto names = shipped_clusters();
  ASSERT_GE(names.size(), 8u);
  for (const std::string& name : names) {
    const Cluster cluster = load_cluster(name);
    EXPECT_EQ(cluster.name, name);
    EXPECT_FALSE(cluster.about.empty()) << name;
    EXPECT_EQ(lay_out(cluster, cluster.devices()).ranks, cluster.devices());
  }
}

TEST(ClusterFile, NamesTheShippedOnesWhenOneIsUnknown) {
  try {
    load_cluster("10gbee");
    FAIL() << "accepted";
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("10gbe"), std::string::npos);
  }
}

TEST(ClusterFile, LaysRanksOutOverWholeNodesAndKindsOfDevices) {
  const Cluster cluster = parse_cluster(kGood, "c.yaml");
  EXPECT_EQ(lay_out(cluster, 4).nodes, 1);
  EXPECT_EQ(lay_out(cluster, 6).nodes, 2);
  EXPECT_EQ(lay_out(cluster, 8).devices.size(), 1u);
  EXPECT_EQ(lay_out(cluster, 9).devices.size(), 2u);
  EXPECT_EQ(lay_out(cluster, 9).nodes, 3);
  EXPECT_THROW(lay_out(cluster, 11), UsageError);
}

TEST(LinksFile, GivesTheLinksThatAProbeMeasured) {
  // 4 ranks of one node: start-up 60 µs and 0.3 ns per byte of an all-reduce.
  const std::string text = R"({"format": "tutti-links-1", "date": "2024-05-01T12:00:00Z",
    "nodes": [{"host": "a", "ranks": [0, 1, 2, 3]}],
    "levels": [{"level": "node", "ranks": [0, 1, 2, 3], "operations": [{"operation": "all_reduce",
      "startup_s": 60e-6, "per_byte_s": 0.3e-9, "residual": 0, "samples": []}]}]})";
  const Cluster cluster = cluster_from_links(text, "links.json");
  EXPECT_EQ(cluster.devices(), 4);
  EXPECT_NEAR(cluster.inside.startup_s, 60e-6 / (1.5 * 4), 1e-12);
  EXPECT_NEAR(cluster.inside.bytes_per_s, 1.5 / 0.3e-9, 1);
  EXPECT_THROW(cluster_from_links("{}", "links.json"), UsageError);
  EXPECT_THROW(cluster_from_links("not JSON", "links.json"), UsageError);
}

}  // namespace
}  // namespace tutti
