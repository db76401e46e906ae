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

}  // namespace
}  // namespace tutti
