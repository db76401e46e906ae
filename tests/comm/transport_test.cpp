#include "comm/transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "comm/connect.h"
#include "tutti/error.h"

namespace tutti {
namespace {

using ::testing::HasSubstr;

LaunchEnv some_ranks(int nodes) {
  LaunchEnv env;
  env.size = 4;
  env.local_size = 4 / nodes;
  env.nodes = nodes;
  env.job = "transport-test";
  return env;
}

std::string refusal(const std::function<void()>& work) {
  try {
    work();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(Transports, OfAutoAreTheFirstThatReachAllRanks) {
  EXPECT_EQ(transport_of("auto", some_ranks(1)).name, "shm");
  EXPECT_EQ(transport_of("auto", some_ranks(2)).name, "mpi");
  EXPECT_EQ(transport_of("nccl", some_ranks(2)).name, "nccl");
}

TEST(Transports, OfGpusWantOneForEachRank) {
  EXPECT_TRUE(have_own_gpus({"b", "a", "c"}));
  EXPECT_TRUE(have_own_gpus({"a"}));
  EXPECT_FALSE(have_own_gpus({"a", "b", "a"}));
  EXPECT_FALSE(have_own_gpus({"a", ""}));
}

TEST(Transports, OfOneMachineRefuseRanksOfSeveral) {
  ConnectOptions options;
  for (const Transport& transport : transports()) {
    options.transport = transport.name;
    if (!transport.one_machine) continue;
    EXPECT_THAT(refusal([&] { connect_ranks(options, some_ranks(2)); }), HasSubstr("but this job has 2 nodes"));
  }
}

TEST(Transports, ThatThisBuildLacksSayWhatIsMissing) {
  for (const Transport& transport : transports()) {
    if (transport.missing().empty()) continue;
    EXPECT_THAT(refusal([&] {
                  transport.join({"job", "group", 0, {0}});
                }),
                HasSubstr("this build has no " + transport.missing()));
  }
}

TEST(Transports, HaveNamesOfTheirOwnAndSuggestThem) {
  std::set<std::string> names;
  for (const std::string& name : transport_names()) EXPECT_TRUE(names.insert(name).second) << name;
  EXPECT_EQ(names.count("auto"), 1u);
  EXPECT_THAT(refusal([] { find_transport("ncl"); }), HasSubstr("did you mean 'nccl'?"));
  EXPECT_EQ(transports_for_any_device(), "shm or mpi");
}

}  // namespace
}  // namespace tutti
