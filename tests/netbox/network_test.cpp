#include "netbox/network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "netbox/status.h"
#include "tutti/error.h"

namespace tutti::netbox {
namespace {

using ::testing::HasSubstr;

std::string refusal(const std::string& rate) {
  try {
    parse_rate(rate);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "was taken";
}

TEST(Rate, IsANumberAndAUnit) {
  EXPECT_EQ(parse_rate("1gbit"), 1'000'000'000U);
  EXPECT_EQ(parse_rate("2.5gbit"), 2'500'000'000U);
  EXPECT_EQ(parse_rate("100mbit"), 100'000'000U);
  EXPECT_EQ(parse_rate("500kbit"), 500'000U);
  EXPECT_EQ(parse_rate("unlimited"), 0U);
}

TEST(Rate, ReadsBackAsItIsWritten) {
  for (const char* const text : {"1gbit", "2.5gbit", "100mbit", "250kbit", "unlimited"})
    EXPECT_EQ(format_rate(parse_rate(text)), text);
}

TEST(Rate, SaysWhatIsWrongWithOne) {
  EXPECT_THAT(refusal("fast"), HasSubstr("'fast' does not begin with a number"));
  EXPECT_THAT(refusal("100"), HasSubstr("has no unit"));
  EXPECT_THAT(refusal("1gbps"), HasSubstr("has the unknown unit 'gbps'"));
  for (const char* const text : {"-1gbit", "0mbit", "1bit", "9999gbit", "nangbit", "infgbit"})
    EXPECT_THAT(refusal(text), HasSubstr("is not between 100kbit and 1000gbit")) << text;
}

TEST(NamedNetwork, HasItsRealRateWhereTheMachineCarriesIt) {
  const Network network = find_network("2.5gbe", 2);
  EXPECT_EQ(network.carried, 2'500'000'000U);
  EXPECT_FALSE(network.is_scaled());
  EXPECT_EQ(find_network("10gbe", 8).scale(), 1);
}

TEST(NamedNetwork, IsScaledAndSaysSoWhereItIsTooFast) {
  const Network network = find_network("100gbe", 2);
  EXPECT_EQ(network.real, 100'000'000'000U);
  EXPECT_EQ(network.carried, 1'000'000'000U);
  EXPECT_EQ(network.scale(), 100);
  EXPECT_THAT(describe(network), HasSubstr("100gbe SCALED to 1gbit: 1/100 of its rate"));
}

TEST(NamedNetwork, ThatIsUnknownIsAnsweredWithTheNearest) {
  try {
    find_network("10gb", 2);
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("did you mean '10gbe'?"));
  }
}

TEST(Burst, HoldsASegmentedPacketAndNeverMoreThanNeeded) {
  EXPECT_EQ(burst_bytes(100'000'000), 70'000U);
  EXPECT_EQ(burst_bytes(1'000'000'000), 250'000U);
  EXPECT_EQ(burst_bytes(2'500'000'000), 262'144U);
  EXPECT_EQ(burst_bytes(10'000'000'000), 4'000'000U);
}

TEST(MachineLoad, IsTheShareOfTheTimeBetweenTwoLooks) {
  const CpuTimes begin = parse_cpu_times("cpu  100 0 100 700 100 0 0 0 0 0\ncpu0 1 2 3\n");
  const CpuTimes end = parse_cpu_times("cpu  150 0 100 720 110 0 0 20 0 0\n");
  EXPECT_DOUBLE_EQ(load_between(begin, end).steal, 20);
  EXPECT_DOUBLE_EQ(load_between(begin, end).idle, 30);
  EXPECT_DOUBLE_EQ(load_between(begin, begin).steal, 0);
}

}  // namespace
}  // namespace tutti::netbox
