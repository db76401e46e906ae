#include "base/names.h"

#include <gtest/gtest.h>

namespace tutti {
namespace {

const std::vector<std::string> kStrategies = {"bsp", "buckets", "bytescheduler", "mgwfbp", "wfbp"};

TEST(NearestName, FindsANameOneSlipAway) {
  EXPECT_EQ(nearest_name("bucket", kStrategies), "buckets");               // one left out
  EXPECT_EQ(nearest_name("mgwffbp", kStrategies), "mgwfbp");               // one too many
  EXPECT_EQ(nearest_name("bytezcheduler", kStrategies), "bytescheduler");  // one changed
  EXPECT_EQ(nearest_name("wfpb", kStrategies), "wfbp");                    // two swapped
}

TEST(NearestName, PrefersTheNameWithFewerEdits) {
  EXPECT_EQ(nearest_name("wfbb", {"mgwfbp", "wfbp"}), "wfbp");
  EXPECT_EQ(nearest_name("wfbp", kStrategies), "wfbp");
}

TEST(NearestName, CountsASwapOfNeighboursAsOneEdit) {
  // "abdc" is one swap from "abcd", two changes from "abxy": only a swap that costs one decides.
  EXPECT_EQ(nearest_name("abdc", {"abxy", "abcd"}), "abcd");
}

TEST(NearestName, AllowsMoreEditsInLongerNames) {
  EXPECT_EQ(nearest_name("bytshedulr", kStrategies), "bytescheduler");  // three left out of thirteen
  EXPECT_EQ(nearest_name("xyz", {"bsp"}), "");                          // three changed of three
}

TEST(NearestName, IsEmptyWhenNothingIsNear) {
  EXPECT_EQ(nearest_name("parameter-server", kStrategies), "");
  EXPECT_EQ(nearest_name("anything", {}), "");
}

TEST(UnknownName, NamesTheKindTheSlipTheSuggestionAndAllThatIsKnown) {
  EXPECT_EQ(unknown_name("strategy", "wfpb", {"bsp", "buckets", "wfbp"}),
            "unknown strategy 'wfpb'; did you mean 'wfbp'? Known: bsp, buckets, wfbp.");
}

TEST(UnknownName, SuggestsNothingWhenNothingIsNear) {
  EXPECT_EQ(unknown_name("model", "transformer", {"cnn", "mlp"}), "unknown model 'transformer'. Known: cnn, mlp.");
}

TEST(FolderName, IsTextThatStaysInItsPlace) {
  for (const char* name : {"first", "a.1", "ranks4-lr0.1", "日本", "..a", "-1.1", "a b"})
    EXPECT_EQ(problem_of_folder_name(name), "") << name;
  for (const std::string& name :
       {std::string(), std::string("."), std::string(".."), std::string("../../victim"), std::string("/etc"),
        std::string("a/b"), std::string("a\nb"), std::string("a\0b", 3), std::string("\xff"), std::string(300, 'a')})
    EXPECT_NE(problem_of_folder_name(name), "") << name;
}

TEST(HostName, IsNoOptionAndNoCommand) {
  for (const char* name : {"node1", "10.0.0.1", "gn-01.cluster.org", "me@node1", "_a"})
    EXPECT_TRUE(is_host_name(name)) << name;
  for (const char* name : {"", "-oProxyCommand=x", "-", "a b", "a;b", "a$(b)", "a,b", "a\nb", "a/b", "a'b", "\xc3\xa4"})
    EXPECT_FALSE(is_host_name(name)) << name;
}

}  // namespace
}  // namespace tutti
