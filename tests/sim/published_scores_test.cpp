// What docs/studies/simulator-accuracy.md claims of the shipped clusters, against the published figures. Fits are not
// repeated here: the shipped files hold what they found.
#include <gtest/gtest.h>

#include "sim/calibration.h"
#include "support/published_texts.h"

namespace tutti {
namespace {

std::vector<Prediction> predictions(const std::string& name) {
  std::vector<PublishedRow> rows;
  for (const PublishedRow& row : parse_published(read_file(test::published_figures(name)), name))
    if (!row.is_mislabelled) rows.push_back(row);
  Clusters clusters;
  for (const std::string& name : published_networks()) clusters[name] = load_cluster(name);
  return PublishedRuns(rows).predict(clusters);
}

TEST(PublishedScores, OfTheShippedClustersAreWithinWhatIsClaimed) {
  const Score score = score_of(predictions("strategies_networks.csv"));
  EXPECT_EQ(score.rows, 162u);  // 2 models × 3 networks × 7 methods × 4 sizes, without 6 that are mislabelled
  EXPECT_LT(score.mean, 0.023);
  EXPECT_LT(score.worst_tenth, 0.05);
}

TEST(PublishedScores, OfAModelThatNothingWasFittedToAreWithinWhatIsClaimed) {
  const Score score = score_of(predictions("strategies_networks_bert_large.csv"));
  EXPECT_EQ(score.rows, 78u);
  EXPECT_LT(score.mean, 0.06);
  EXPECT_LT(score.worst_tenth, 0.16);
}

TEST(PublishedScores, LetThePlannerChooseAMethodNearTheBestMeasured) {
  const std::vector<Choice> choices = choices_of(predictions("strategies_networks.csv"));
  ASSERT_EQ(choices.size(), 24u);
  std::size_t good = 0;
  for (const Choice& choice : choices) good += choice.loss <= kTellsApart ? 1 : 0;
  EXPECT_GE(good, 23u);
}

}  // namespace
}  // namespace tutti
