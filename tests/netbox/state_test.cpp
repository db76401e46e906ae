#include "netbox/state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "netbox/mpi_files.h"
#include "netbox/status.h"
#include "support/command.h"
#include "tutti/error.h"

namespace tutti::netbox {
namespace {

using ::testing::HasSubstr;

Box two_nodes() {
  Box cluster;
  cluster.name = "pair";
  cluster.network = {"10gbe", 10'000'000'000, 1'000'000'000};
  cluster.nodes = {{"n0", "tutti-pair-n0", "p0", "10.77.0.1", 2, 11, 1'000'000'000},
                   {"n1", "tutti-pair-n1", "p1", "10.77.0.2", 1, 12, 100'000'000}};
  return cluster;
}

TEST(ClusterState, IsTheSameAfterJson) {
  const nlohmann::json json = two_nodes();
  EXPECT_EQ(json.at("network").at("scale"), 10);
  const auto read = json.get<Box>();
  EXPECT_EQ(nlohmann::json(read), json);
  EXPECT_EQ(read.nodes[1].rate, 100'000'000U);
}

TEST(ClusterState, FindsNodesByNameOrNumber) {
  EXPECT_EQ(two_nodes().node("n1").address, "10.77.0.2");
  EXPECT_EQ(two_nodes().node("1").name, "n1");
}

TEST(ClusterState, SuggestsTheNearestNode) {
  try {
    two_nodes().node("m1");
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("cluster 'pair': unknown node 'm1'; did you mean 'n1'?"));
  }
}

TEST(ClusterName, IsWhatNamespacesAndFoldersTake) {
  EXPECT_NO_THROW(check_cluster_name("my-box_2"));
  for (const char* const name : {"", "../x", "a/b", "-x", "Box", "a b", "x\n", "0123456789012345678901234567890123"})
    EXPECT_THROW(check_cluster_name(name), UsageError) << name;
}

TEST(ClusterNamespaces, OfOneNameAreNotThoseOfALongerOne) {
  EXPECT_TRUE(is_namespace_of("a", "tutti-a-n0"));
  EXPECT_TRUE(is_namespace_of("a", "tutti-a-n12"));
  EXPECT_TRUE(is_namespace_of("a", "tutti-a-switch"));
  for (const char* const other :
       {"tutti-a-n0-n0", "tutti-a-n0-switch", "tutti-ab-n0", "tutti-a-n", "tutti-a-nx", "a-n0"})
    EXPECT_FALSE(is_namespace_of("a", other)) << other;
}

TEST(MpiEnvironment, NamesTheAgentTheHostfileAndTheMapping) {
  const auto environment = node_environment(two_nodes(), true);
  EXPECT_EQ(environment.at("OMPI_MCA_plm_rsh_agent"), "/run/tutti/cluster/pair/rsh");
  EXPECT_EQ(environment.at("OMPI_MCA_orte_default_hostfile"), "/run/tutti/cluster/pair/hostfile");
  EXPECT_EQ(environment.at("OMPI_MCA_rmaps_base_mapping_policy"), "node");
  EXPECT_EQ(node_environment(two_nodes(), false).at("OMPI_MCA_rmaps_base_mapping_policy"), "slot");
}

TEST(StatusAsJson, HasNothingOfALinkThatIsDown) {
  std::vector<NodeStatus> statuses(2);
  statuses[0].node = two_nodes().nodes[0];
  statuses[0].state = "up";
  statuses[0].link.out = 5;
  statuses[1].node = two_nodes().nodes[1];
  statuses[1].state = "down";
  const nlohmann::json status = status_json(two_nodes(), statuses, {1, 50});
  EXPECT_EQ(status["name"], "pair");
  EXPECT_EQ(status["scale"], 10);
  EXPECT_EQ(status["nodes"][0]["bits_per_s_out"], 5);
  EXPECT_EQ(status["nodes"][0]["goodput_to_next"], nullptr);
  EXPECT_EQ(status["nodes"][1]["bits_per_s_out"], nullptr);
  EXPECT_EQ(status["idle_percent"], 50);
}

TEST(RshScript, RefusesUnknownHostsAndHoldersThatAreGone) {
  const auto rsh = [](const std::string& arguments) {
    return run_command("{ sh -s -- " + arguments + " <<'END'\n" + rsh_script(two_nodes()) + "END\n}");
  };
  EXPECT_THAT(rsh("n5 true").output, HasSubstr("the cluster 'pair' has no node 'n5'"));
  EXPECT_THAT(rsh("-x -l root n0 true").output, HasSubstr("n0 is down"));
  EXPECT_THAT(rsh("10.77.0.2 true").output, HasSubstr("n1 is down"));
  EXPECT_EQ(rsh("n0").exit_code, 255);
}

}  // namespace
}  // namespace tutti::netbox
