#include "comm/launch_env.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "comm/connect.h"
#include "tutti/error.h"

namespace tutti {
namespace {

using Variables = std::map<std::string, std::string>;

LaunchEnv read(const Variables& variables) {
  return read_launch_env([&](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional<std::string>(found->second);
  });
}

std::string error_of(const Variables& variables) {
  try {
    read(variables);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

TEST(LaunchEnv, ALoneProcessIsRankZeroOfOne) {
  const LaunchEnv env = read({});
  EXPECT_EQ(env.rank, 0);
  EXPECT_EQ(env.size, 1);
  EXPECT_EQ(env.local_size, 1);
  EXPECT_EQ(env.nodes, 1);
  EXPECT_EQ(env.launcher, "");
}

TEST(LaunchEnv, CountsTheNodesThatAreNotCountedForIt) {
  // Two nodes of two ranks and one of one: every rank has to know of the last.
  Variables variables = {{"OMPI_COMM_WORLD_RANK", "0"},
                         {"OMPI_COMM_WORLD_SIZE", "5"},
                         {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                         {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}};
  EXPECT_EQ(read(variables).nodes, 3);
  // The number of its own node says that there are more.
  variables = {{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "0"}, {"LOCAL_WORLD_SIZE", "1"}, {"GROUP_RANK", "4"}};
  EXPECT_EQ(read(variables).node, 4);
  EXPECT_EQ(read(variables).nodes, 5);
}

TEST(LaunchEnv, RefusesMoreNodesOfSlurmsThanThereAreInAllTogether) {
  Variables slurm = {{"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1200000"}};
  slurm["SLURM_STEP_TASKS_PER_NODE"] = "1(x600000),1(x600000)";
  EXPECT_EQ(error_of(slurm), "SLURM_STEP_TASKS_PER_NODE=1(x600000),1(x600000) does not read like 2(x3),1");
}

TEST(LaunchEnv, TuttisOwnVariablesComeFirst) {
  const LaunchEnv env = read({{"TUTTI_RANK", "3"},
                              {"TUTTI_SIZE", "4"},
                              {"TUTTI_LOCAL_RANK", "1"},
                              {"TUTTI_LOCAL_SIZE", "2"},
                              {"TUTTI_NODE", "1"},
                              {"TUTTI_NODES", "2"},
                              {"TUTTI_JOB", "j7"},
                              {"OMPI_COMM_WORLD_RANK", "0"},
                              {"OMPI_COMM_WORLD_SIZE", "1"}});
  EXPECT_EQ(env.rank, 3);
  EXPECT_EQ(env.size, 4);
  EXPECT_EQ(env.local_rank, 1);
  EXPECT_EQ(env.local_size, 2);
  EXPECT_EQ(env.node, 1);
  EXPECT_EQ(env.nodes, 2);
  EXPECT_EQ(env.job, "j7");
  EXPECT_EQ(env.launcher, "tutti");
}

TEST(LaunchEnv, WithoutLocalNumbersAllRanksAreOnOneNode) {
  const LaunchEnv env = read({{"TUTTI_RANK", "2"}, {"TUTTI_SIZE", "3"}});
  EXPECT_EQ(env.local_rank, 2);
  EXPECT_EQ(env.local_size, 3);
  EXPECT_EQ(env.node, 0);
  EXPECT_EQ(env.nodes, 1);
}

TEST(LaunchEnv, ReadsOpenMpi) {
  const LaunchEnv env = read({{"OMPI_COMM_WORLD_RANK", "5"},
                              {"OMPI_COMM_WORLD_SIZE", "8"},
                              {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                              {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                              {"PMIX_NAMESPACE", "2714697729"}});
  EXPECT_EQ(env.rank, 5);
  EXPECT_EQ(env.local_rank, 1);
  EXPECT_EQ(env.node, 1);
  EXPECT_EQ(env.nodes, 2);
  EXPECT_EQ(env.job, "ompi-2714697729");
  EXPECT_EQ(env.launcher, "mpirun");
}

TEST(LaunchEnv, ReadsMpich) {
  const LaunchEnv env =
      read({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}});
  EXPECT_EQ(env.rank, 1);
  EXPECT_EQ(env.size, 2);
  EXPECT_EQ(env.local_rank, 1);
  EXPECT_EQ(env.launcher, "mpirun");
}

const Variables kSlurm{{"SLURM_JOB_ID", "77"},        {"SLURM_STEP_ID", "2"},
                       {"SLURM_PROCID", "6"},         {"SLURM_STEP_NUM_TASKS", "7"},
                       {"SLURM_LOCALID", "0"},        {"SLURM_NODEID", "3"},
                       {"SLURM_STEP_NUM_NODES", "4"}, {"SLURM_STEP_TASKS_PER_NODE", "2(x3),1"}};

TEST(LaunchEnv, ReadsSlurmWithUnequalNodes) {
  const LaunchEnv last = read(kSlurm);
  EXPECT_EQ(last.rank, 6);
  EXPECT_EQ(last.size, 7);
  EXPECT_EQ(last.local_size, 1);
  EXPECT_EQ(last.node, 3);
  EXPECT_EQ(last.nodes, 4);
  EXPECT_EQ(last.job, "slurm-77.2");
  EXPECT_EQ(last.launcher, "srun");
  Variables first = kSlurm;
  first["SLURM_PROCID"] = "1";
  first["SLURM_LOCALID"] = "1";
  first["SLURM_NODEID"] = "0";
  EXPECT_EQ(read(first).local_size, 2);
}

TEST(LaunchEnv, SlurmsOwnVariablesWinOverItsPmi) {
  Variables both = kSlurm;
  both["PMI_RANK"] = "6";
  both["PMI_SIZE"] = "7";
  EXPECT_EQ(read(both).launcher, "srun");
}

TEST(LaunchEnv, AShellInsideAnAllocationIsALoneProcess) {
  const LaunchEnv env = read({{"SLURM_JOB_ID", "77"}, {"SLURM_NTASKS", "8"}, {"SLURM_PROCID", "0"}});
  EXPECT_EQ(env.size, 1);
  EXPECT_EQ(env.launcher, "");
}

TEST(LaunchEnv, ReadsTorchrun) {
  const LaunchEnv env = read({{"RANK", "3"},
                              {"WORLD_SIZE", "4"},
                              {"LOCAL_RANK", "1"},
                              {"LOCAL_WORLD_SIZE", "2"},
                              {"GROUP_RANK", "1"},
                              {"TORCHELASTIC_RUN_ID", "none"},
                              {"MASTER_PORT", "29500"}});
  EXPECT_EQ(env.rank, 3);
  EXPECT_EQ(env.node, 1);
  EXPECT_EQ(env.nodes, 2);
  EXPECT_EQ(env.job, "torch-none-29500");
  EXPECT_EQ(env.launcher, "torchrun");
}

TEST(LaunchEnv, RankAloneMeansNothing) { EXPECT_EQ(read({{"RANK", "3"}}).size, 1); }

TEST(LaunchEnv, ErrorsNameTheVariableAndItsValue) {
  EXPECT_EQ(error_of({{"TUTTI_RANK", "two"}, {"TUTTI_SIZE", "4"}}), "TUTTI_RANK=two is not a whole number from 0 on");
  EXPECT_EQ(error_of({{"TUTTI_RANK", "-1"}, {"TUTTI_SIZE", "4"}}), "TUTTI_RANK=-1 is not a whole number from 0 on");
  EXPECT_EQ(error_of({{"TUTTI_RANK", "4"}, {"TUTTI_SIZE", "4"}}), "TUTTI_RANK=4 must be below TUTTI_SIZE=4");
  EXPECT_EQ(error_of({{"TUTTI_RANK", "4"}}), "TUTTI_SIZE is not set although TUTTI_RANK is");
  EXPECT_EQ(error_of({{"RANK", "0"}, {"WORLD_SIZE", "0"}}), "WORLD_SIZE=0 must be at least 1");
  EXPECT_EQ(error_of({{"TUTTI_RANK", "0"}, {"TUTTI_SIZE", "2"}, {"TUTTI_LOCAL_SIZE", "3"}}),
            "TUTTI_LOCAL_SIZE=3 is more than TUTTI_SIZE=2");
  Variables slurm = kSlurm;
  slurm["SLURM_STEP_TASKS_PER_NODE"] = "2(y3)";
  EXPECT_EQ(error_of(slurm), "SLURM_STEP_TASKS_PER_NODE=2(y3) does not read like 2(x3),1");
  slurm["SLURM_STEP_TASKS_PER_NODE"] = "2,2";
  EXPECT_EQ(error_of(slurm), "SLURM_STEP_TASKS_PER_NODE=2,2 does not reach SLURM_NODEID=3");
}

TEST(LaunchEnv, EachRankOfAMachineNeedsAGpuUnlessNcclIsToldThatTheyAreOfSeveral) {
  LaunchEnv env;
  env.local_size = 2;
  ::unsetenv("NCCL_HOSTID");
  EXPECT_FALSE(has_gpu_for_each_rank(0, env));
  EXPECT_FALSE(has_gpu_for_each_rank(1, env));
  EXPECT_TRUE(has_gpu_for_each_rank(2, env));
  ::setenv("NCCL_HOSTID", "a", 1);
  EXPECT_TRUE(has_gpu_for_each_rank(1, env));
  EXPECT_FALSE(has_gpu_for_each_rank(0, env));
  ::unsetenv("NCCL_HOSTID");
}

}  // namespace
}  // namespace tutti
