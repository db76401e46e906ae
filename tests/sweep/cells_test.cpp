#include "sweep/cells.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tutti/error.h"

namespace tutti::sweep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> ids(const std::vector<SweepCell>& cells) {
  std::vector<std::string> all;
  for (const SweepCell& cell : cells) all.push_back(cell.id);
  return all;
}

Sweep strategies_by_ranks() {
  Sweep sweep;
  sweep.axes = {{"strategy", {"bsp", "dear"}}, {"ranks", {"2", "4"}}};
  return sweep;
}

TEST(Cells, AreAllCombinationsWithStrategiesSideBySide) {
  EXPECT_THAT(ids(expand(strategies_by_ranks())),
              ElementsAre("bsp-ranks2.1", "dear-ranks2.1", "bsp-ranks4.1", "dear-ranks4.1"));
}

TEST(Cells, PutWhatIsComparedSideBySide) {
  Sweep sweep = strategies_by_ranks();
  sweep.compare = "ranks";
  EXPECT_THAT(ids(expand(sweep)), ElementsAre("bsp-ranks2.1", "bsp-ranks4.1", "dear-ranks2.1", "dear-ranks4.1"));
}

TEST(Cells, RunOneRepeatOfEverythingBeforeTheNextAndThatBackwards) {
  Sweep sweep = strategies_by_ranks();
  sweep.axes[1].values = {"2"};
  sweep.repeats = 3;
  EXPECT_THAT(ids(expand(sweep)), ElementsAre("bsp.1", "dear.1", "dear.2", "bsp.2", "bsp.3", "dear.3"));
}

TEST(Cells, LeaveOutWhatMatches) {
  Sweep sweep = strategies_by_ranks();
  sweep.leave_out = {{{"strategy", {"dear"}}, {"ranks", {"2", "4"}}}, {{"ranks", {"4"}}}};
  EXPECT_THAT(ids(expand(sweep)), ElementsAre("bsp-ranks2.1"));
}

TEST(Cells, HaveTheirBaselineMeasuredOnceBeforeThem) {
  Sweep sweep = strategies_by_ranks();
  sweep.axes.insert(sweep.axes.begin(), {"model", {"a", "b"}});
  sweep.baseline = {{"ranks", "1"}};
  const std::vector<SweepCell> cells = expand(sweep);
  EXPECT_THAT(ids(cells),
              ElementsAre("a-ranks1.1", "a-bsp-ranks2.1", "a-dear-ranks2.1", "a-bsp-ranks4.1", "a-dear-ranks4.1",
                          "b-ranks1.1", "b-bsp-ranks2.1", "b-dear-ranks2.1", "b-bsp-ranks4.1", "b-dear-ranks4.1"));
  EXPECT_TRUE(cells[0].is_baseline);
  EXPECT_FALSE(cells[1].is_baseline);
  EXPECT_EQ(cells[0].settings.count("strategy"), 0U);
}

TEST(Cells, WithOneRankAreOneWhateverWouldTravel) {
  Sweep sweep = strategies_by_ranks();
  sweep.axes[1].values = {"1", "2"};
  sweep.baseline = {{"ranks", "1"}};
  const std::vector<SweepCell> cells = expand(sweep);
  EXPECT_THAT(ids(cells), ElementsAre("ranks1.1", "bsp-ranks2.1", "dear-ranks2.1"));
  EXPECT_TRUE(cells[0].is_baseline);
}

TEST(Cells, CanHaveABaselineOfManyRanks) {
  Sweep sweep = strategies_by_ranks();
  sweep.baseline = {{"strategy", "bsp"}};
  const std::vector<SweepCell> cells = expand(sweep);
  EXPECT_EQ(cells.size(), 4U);
  for (const SweepCell& cell : cells) EXPECT_EQ(cell.is_baseline, cell.settings.at("strategy") == "bsp") << cell.id;
}

TEST(Cells, TakeOptionsThenSpecialCasesThenAxes) {
  Sweep sweep = strategies_by_ranks();
  sweep.options = {{"batch", "64"}, {"lr", "1"}, {"ranks", "9"}};
  sweep.special_cases = {{{{"strategy", {"dear"}}}, {{"batch", "32"}}}, {{{"ranks", {"4"}}}, {{"batch", "16"}}}};
  const std::vector<SweepCell> cells = expand(sweep);
  EXPECT_EQ(cells[0].options.at("batch"), "64");
  EXPECT_EQ(cells[1].options.at("batch"), "32");
  EXPECT_EQ(cells[3].options.at("batch"), "16");
  EXPECT_EQ(cells[0].ranks, 2);
  EXPECT_EQ(describe_config(cells[0].settings), (nlohmann::json{{"strategy", "bsp"}, {"ranks", 2}, {"batch", 64}}));
}

TEST(Cells, KnowWhatTheirNetworkMeans) {
  Sweep sweep = strategies_by_ranks();
  sweep.axes.push_back({"network", {"slow"}});
  sweep.networks["slow"] = {2.5, 100, "a slow one"};
  const SweepCell cell = expand(sweep)[0];
  EXPECT_EQ(cell.network, "slow");
  EXPECT_EQ(cell.emulated.gbps, 2.5);
  EXPECT_EQ(cell.options.count("network"), 0U);
  EXPECT_EQ(cell.settings.at("network"), "slow");
}

TEST(Cells, AreRefusedWhenNodesHaveNoRank) {
  Sweep sweep;
  sweep.axes = {{"nodes", {"1", "2"}}, {"ranks", {"1", "2"}}};
  EXPECT_THROW(expand(sweep), UsageError);
  sweep.leave_out = {{{"nodes", {"2"}}, {"ranks", {"1"}}}};
  EXPECT_THAT(ids(expand(sweep)), ElementsAre("nodes1-ranks1.1", "nodes1-ranks2.1", "nodes2-ranks2.1"));
}

TEST(Cells, AreRefusedWhenTheyAreTooMany) {
  Sweep sweep = strategies_by_ranks();
  sweep.repeats = 25'001;
  EXPECT_THROW(expand(sweep), UsageError);
}

TEST(Cells, HaveIdsThatAreFileNamesAndUnique) {
  Sweep sweep;
  sweep.axes = {{"data", {"a/b", "a b", ".."}}};
  EXPECT_THAT(ids(expand(sweep)), ElementsAre("a_b.1", "a_b_2.1", "...1"));
}

TEST(Cells, CanBeLimitedToPartOfASweepAndItsBaselines) {
  Sweep sweep = strategies_by_ranks();
  sweep.axes.insert(sweep.axes.begin(), {"model", {"a", "b"}});
  sweep.baseline = {{"ranks", "1"}};
  const std::vector<SweepCell> cells = expand(sweep);
  EXPECT_THAT(ids(only(cells, {"strategy=dear", "model=b", "ranks=4", "ranks=2"}, sweep)),
              ElementsAre("b-ranks1.1", "b-dear-ranks2.1", "b-dear-ranks4.1"));
  const auto complaint = [&](const std::string& choice) -> std::string {
    try {
      only(cells, {choice}, sweep);
      return "";
    } catch (const UsageError& error) {
      return error.what();
    }
  };
  EXPECT_THAT(complaint("strategy=bps"), HasSubstr("did you mean 'bsp'?"));
  EXPECT_THAT(complaint("rank=2"), HasSubstr("did you mean 'ranks'?"));
  EXPECT_THAT(complaint("bsp"), HasSubstr("write axis=value"));
}

TEST(Cells, AreTheSameAfterGoingThroughAFile) {
  Sweep sweep = strategies_by_ranks();
  sweep.axes.push_back({"network", {"slow"}});
  sweep.networks["slow"] = {2.5, 100, "a slow one"};
  sweep.options = {{"servers", "2"}};
  sweep.trace = true;
  for (const SweepCell& cell : expand(sweep)) {
    const nlohmann::json written = cell;
    const SweepCell read = nlohmann::json::parse(written.dump()).get<SweepCell>();
    EXPECT_EQ(nlohmann::json(read), written);
    EXPECT_EQ(read.servers, 2);
  }
}

}  // namespace
}  // namespace tutti::sweep
