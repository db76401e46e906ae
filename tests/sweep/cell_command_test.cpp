#include "sweep/cell_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tutti/error.h"

namespace tutti::sweep {
namespace {

using ::testing::ElementsAre;

SweepCell two_nodes() {
  SweepCell cell;
  cell.id = "a.1";
  cell.options = {{"batch", "8"}, {"ranks", "5"}};
  cell.ranks = 5;
  cell.nodes = 2;
  return cell;
}

Place somewhere() {
  Place place;
  place.program = "/opt/tutti";
  place.cluster = "bench-1";
  return place;
}

TEST(CellCommand, OnOneNodeIsATrainingRunWithItsOwnFolder) {
  SweepCell cell = two_nodes();
  cell.nodes = 1;
  cell.emulated = {2.5, 100, ""};
  cell.trace = true;
  EXPECT_THAT(
      cell_command(cell, "runs/s/cells/a.1", somewhere()).words,
      ElementsAre("/opt/tutti", "train", "--batch=8", "--runs=runs/s/cells", "--name=a.1",
                  "--trace=runs/s/cells/a.1/trace.json", "--ranks=5", "--link-gbps=2.5", "--link-startup-us=100"));
}

TEST(CellCommand, OnHostsDealsRanksOutAsEquallyAsPossible) {
  Place place = somewhere();
  place.hosts = "lm1:4,lm6:4,lm7";
  EXPECT_THAT(cell_command(two_nodes(), "c/a.1", place).words,
              ElementsAre("/opt/tutti", "train", "--batch=8", "--runs=c", "--name=a.1", "--hosts=lm1:3,lm6:2"));
  SweepCell cell = two_nodes();
  cell.nodes = 4;
  EXPECT_THROW(cell_command(cell, "c/a.1", place), Error);
}

TEST(CellCommand, InASlurmJobIsAStepOfIt) {
  Place place = somewhere();
  place.is_slurm = true;
  place.slurm_cpus_per_task = 3;
  const CellCommand command = cell_command(two_nodes(), "c/a.1", place);
  EXPECT_THAT(command.words, ElementsAre("env", "SLURM_PMIX_FENCE=ring", "srun", "--mpi=pmix", "--overlap", "--nodes=2",
                                         "--ntasks=5", "--kill-on-bad-exit=1", "--cpus-per-task=3", "/opt/tutti",
                                         "train", "--batch=8", "--runs=c", "--name=a.1"));
  EXPECT_EQ(command.launcher, "srun");
}

TEST(CellCommand, ElseRunsInAClusterInABoxThatIsTakenDownAfterwards) {
  Place place = somewhere();
  place.is_root = true;
  SweepCell cell = two_nodes();
  cell.servers = 1;
  cell.emulated.gbps = 0.5;
  const CellCommand command = cell_command(cell, "c/a.1", place);
  ASSERT_EQ(command.before.size(), 1U);
  EXPECT_THAT(command.before[0], ElementsAre("/opt/tutti", "cluster", "up", "--name", "bench-1", "--replace",
                                             "--slots=3,3", "--rate", "0.5gbit"));
  EXPECT_THAT(command.words, ElementsAre("/opt/tutti", "cluster", "run", "--name", "bench-1", "--", "mpirun", "-np",
                                         "6", "/opt/tutti", "train", "--batch=8", "--runs=c", "--name=a.1"));
  ASSERT_EQ(command.after.size(), 1U);
  EXPECT_THAT(command.after[0], ElementsAre("/opt/tutti", "cluster", "down", "--name", "bench-1"));
}

TEST(CellCommand, SaysWhatSeveralNodesNeed) {
  try {
    cell_command(two_nodes(), "c/a.1", somewhere());
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("2 nodes: run this inside a Slurm job, name machines with --hosts"));
  }
}

}  // namespace
}  // namespace tutti::sweep
