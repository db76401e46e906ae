// `tutti check` and `tutti probe` between nodes of a cluster in a box. Needs root, iproute2 and mpirun; skipped
// without.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "comm/mpi/mpi.h"
#include "support/command.h"
#include "support/machine.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string why_not() {
  if (!built_with_mpi()) return "built without MPI";
  return why_no_box({"mpirun"});
}

class ClusterProbe : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string reason = why_not();
    if (!reason.empty()) GTEST_SKIP() << reason;
  }
  void TearDown() override {
    if (why_not().empty()) cluster("down");
  }
  CommandResult cluster(const std::string& action, const std::string& arguments = "") const {
    return run_command(TUTTI_CLUSTER_TOOL " " + action + " --name " + name_ + " " + arguments);
  }
  /// Runs the command on so many ranks of the cluster.
  CommandResult on_ranks(int ranks, const std::string& command) const {
    return cluster("run", "-- mpirun -np " + std::to_string(ranks) + " " TUTTI_PROBE_TOOL " " + command);
  }

  const std::string name_ = "probe" + std::to_string(::getpid());
};

TEST_F(ClusterProbe, CheckNamesTheNodeWhoseLinkIsSlow) {
  ASSERT_EQ(cluster("up", "--nodes 3 --rate 200mbit").exit_code, 0);
  ASSERT_EQ(cluster("shape", "n2 --rate 20mbit").exit_code, 0);
  const CommandResult result = on_ranks(3, "check");
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, AllOf(HasSubstr("ok: 3 ranks on 3 nodes answer over mpi"),
                                   HasSubstr("warning: the link of n2: at most 0.0"), Not(HasSubstr("link of n0")),
                                   Not(HasSubstr("link of n1"))));
}

TEST_F(ClusterProbe, OfTwoNodesCheckComparesWithWhatIsExpected) {
  ASSERT_EQ(cluster("up", "--nodes 2 --ranks-per-node 2 --rate 200mbit").exit_code, 0);
  CommandResult result = on_ranks(4, "check --link-gbps 0.2");
  EXPECT_THAT(result.output, AllOf(HasSubstr("ok: 4 ranks on 2 nodes"), Not(HasSubstr("of --link-gbps"))));
  ASSERT_EQ(cluster("shape", "n1 --rate 20mbit").exit_code, 0);
  result = on_ranks(4, "check --link-gbps 0.2");
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("under half of the 0.2 Gbit/s of --link-gbps"));
}

TEST_F(ClusterProbe, ProbeMeasuresInsideANodeBetweenNodesAndAll) {
  ASSERT_EQ(cluster("up", "--nodes 2 --ranks-per-node 2 --rate 200mbit").exit_code, 0);
  const std::string file = ::testing::TempDir() + name_ + "-links.json";
  const CommandResult result =
      on_ranks(4, "probe --max-mb 1 --seconds 0.05 --repeats 20 --ops all_reduce,send --links " + file);
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(
      result.output,
      AllOf(HasSubstr("inside a node: 2 ranks over shm"), HasSubstr("inside a node: 2 ranks over mpi"),
            HasSubstr("between nodes, one rank of each: 2 ranks over mpi"), HasSubstr("all ranks: 4 ranks over mpi")));
  const nlohmann::json links = nlohmann::json::parse(read_file(file));
  fs::remove(file);
  // 1 MB takes 42 ms at 200 Mbit/s, less what passes unshaped after a pause; a busy machine takes longer.
  const double megabyte_s = links.at("levels").at(2).at("operations").at(1).at("points").back().at("median_s");
  EXPECT_GT(megabyte_s, 0.02);
  EXPECT_LT(megabyte_s, 0.5);
}

}  // namespace
}  // namespace tutti
