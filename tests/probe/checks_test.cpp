#include "probe/checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace tutti {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

RankFacts rank_on(const std::string& host) {
  RankFacts facts;
  facts.host = host;
  facts.binary = "aaaaaaaaaaaaaaaaaaaa";
  facts.commit = "c0ffee";
  facts.build_type = "Release";
  facts.torch.libtorch = "1.13.0";
  facts.kernel = "6.1";
  facts.cpu = "CPU";
  facts.cores = 2;
  facts.free_disk = int64_t{1} << 40;
  facts.free_shm = int64_t{1} << 33;
  return facts;
}

std::vector<RankFacts> two_nodes() { return {rank_on("n0"), rank_on("n0"), rank_on("n1"), rank_on("n1")}; }

/// The lines that are not ok.
std::vector<std::string> complaints(const std::vector<Finding>& findings) {
  std::vector<std::string> lines;
  for (const Finding& finding : findings)
    if (finding.severity != Severity::ok) lines.push_back(line_of(finding));
  return lines;
}

TEST(CompareBuilds, IsContentWithEqualOnes) {
  const auto findings = compare_builds(two_nodes());
  EXPECT_THAT(complaints(findings), IsEmpty());
  EXPECT_FALSE(has_problem(findings));
  EXPECT_EQ(line_of(findings[0]), "ok: binary: SHA-256 aaaaaaaaaaaa… of commit c0ffee, Release");
}

TEST(CompareBuilds, NamesNodeRanksAndVersionsOfAnotherLibtorch) {
  auto ranks = two_nodes();
  ranks[2].torch.libtorch = ranks[3].torch.libtorch = "2.1.0";
  EXPECT_THAT(complaints(compare_builds(ranks)),
              ElementsAre("problem: libtorch differs: 1.13.0 on n0 (ranks 0, 1), 2.1.0 on n1 (ranks 2, 3). Install the "
                          "same on all nodes."));
}

TEST(CompareBuilds, SeesAnotherLibtorchOfTheSameVersion) {
  auto ranks = two_nodes();
  for (RankFacts& facts : ranks) facts.torch_library = "11111111111111";
  ranks[3].torch_library = "22222222222222";
  EXPECT_THAT(complaints(compare_builds(ranks)),
              ElementsAre(AllOf(HasSubstr("1.13.0 (build id 111111111111) on n0 (ranks 0, 1), n1 (rank 2)"),
                                HasSubstr("1.13.0 (build id 222222222222) on n1 (rank 3)"))));
}

TEST(CompareBuilds, SeesAnotherBinaryOfTheSameCommit) {
  auto ranks = two_nodes();
  ranks[1].binary = "bbbbbbbbbbbbbbbbbbbb";
  const auto findings = compare_builds(ranks);
  EXPECT_TRUE(has_problem(findings));
  EXPECT_THAT(complaints(findings), ElementsAre(AllOf(HasSubstr("binary differs"), HasSubstr("on n0 (rank 1)"))));
}

TEST(CompareModels, SaysNothingWithoutAModel) { EXPECT_THAT(compare_models(two_nodes()), IsEmpty()); }

TEST(CompareModels, NamesTheFirstDifference) {
  auto ranks = two_nodes();
  for (RankFacts& facts : ranks) {
    facts.torch.model = "net";
    facts.torch.parameters = {"a 2×3", "b 4", "c 5"};
  }
  EXPECT_THAT(complaints(compare_models(ranks)), IsEmpty());
  ranks[2].torch.parameters[1] = "b 8";
  EXPECT_THAT(
      complaints(compare_models(ranks)),
      ElementsAre("problem: model differs: parameter 1 is 'b 4' in net on n0 (rank 0), but 'b 8' in net on n1 (rank "
                  "2)."));
  ranks[2].torch.parameters = {"a 2×3"};
  EXPECT_THAT(complaints(compare_models(ranks)), ElementsAre(HasSubstr("but nothing in net on n1")));
}

TEST(CompareMachines, IsContentWithEqualIdleOnes) { EXPECT_THAT(complaints(compare_machines(two_nodes())), IsEmpty()); }

TEST(CompareMachines, WarnsOfWhatCostsTimeAndNamesTheNode) {
  auto ranks = two_nodes();
  ranks[2].steal = ranks[3].steal = 12;
  ranks[0].cores = ranks[1].cores = 1;
  ranks[3].cpu = "Another";
  ranks[2].free_shm = ranks[3].free_shm = 1 << 20;
  const auto findings = compare_machines(ranks);
  EXPECT_FALSE(has_problem(findings));
  EXPECT_THAT(complaints(findings),
              ElementsAre(HasSubstr("CPU differs"), HasSubstr("n0 has 2 ranks on 1 core"), HasSubstr("n1: 12 %"),
                          AllOf(HasSubstr("n1: only"), HasSubstr("/dev/shm"))));
}

TEST(CompareMachines, CallsAFolderThatCannotBeWrittenToAProblem) {
  auto ranks = two_nodes();
  ranks[2].free_disk = ranks[3].free_disk = -1;
  ranks[2].runs_folder = "/somewhere";
  const auto findings = compare_machines(ranks);
  EXPECT_TRUE(has_problem(findings));
  EXPECT_THAT(complaints(findings), ElementsAre("problem: disk: n1: /somewhere cannot be written to"));
}

TEST(CompareMachines, CallsAnotherMpiAProblem) {
  auto ranks = two_nodes();
  for (RankFacts& facts : ranks) facts.mpi = "Open MPI v4.1.4";
  ranks[2].mpi = "Open MPI v5.0.0";
  EXPECT_THAT(complaints(compare_machines(ranks)), ElementsAre(HasSubstr("Open MPI v5.0.0 on n1 (rank 2)")));
}

TEST(JudgeClocks, WarnsOnlyOfWhatTheMeasurementCanTell) {
  const auto ranks = two_nodes();
  EXPECT_THAT(complaints(judge_clocks({{}, {}, {0.2, 0, 0.001}, {0.2, 0, 0.001}}, ranks)),
              ElementsAre(AllOf(HasSubstr("n1 (rank 2) is ahead of n0 (rank 0)"), HasSubstr("200.000 ms"))));
  EXPECT_THAT(complaints(judge_clocks({{}, {}, {0.2, 0, 0.1}, {0.2, 0, 0.1}}, ranks)), IsEmpty());
}

TEST(RankFacts, SurviveTheWire) {
  RankFacts facts = rank_on("n0");
  facts.torch.gpus = {"A", "B"};
  facts.torch.parameters = {"a 1"};
  const nlohmann::json json = facts;
  EXPECT_EQ(nlohmann::json(json.get<RankFacts>()), json);
}

TEST(RankFacts, KnowThisProgramAndItsLibraries) {
  EXPECT_EQ(own_build({}).binary.size(), 64U);
  EXPECT_FALSE(loaded_build_id("libc.so").empty());
  EXPECT_EQ(loaded_build_id("libdoes_not_exist"), "");
}

}  // namespace
}  // namespace tutti
