// What docs/studies/simulator-accuracy.md claims of the shipped clusters, against the whole published table. Fits
// are not repeated here: the shipped files hold what they found.
#include <gtest/gtest.h>

#include "sim/calibration.h"
#include "support/published_texts.h"

namespace tutti {
namespace {

std::vector<Prediction> predictions(const std::string& content) {
  std::vector<PublishedRow> rows;
  for (const PublishedRow& row : parse_published(content, "strategies_networks.md"))
    if (!row.is_mislabelled) rows.push_back(row);
  Clusters clusters;
  for (const std::string& name : published_networks()) clusters[name] = load_cluster(name);
  return PublishedRuns(rows).predict(clusters);
}

TEST(PublishedScores, OfTheShippedClustersAreWithinWhatIsClaimed) {
  TUTTI_PUBLISHED_TEXT(content, "strategies_networks.md");
  const Score score = score_of(predictions(content));
  EXPECT_EQ(score.rows, 162u);  // 2 models × 3 networks × 7 methods × 4 sizes, without 6 that are mislabelled
  EXPECT_LT(score.mean, 0.023);
  EXPECT_LT(score.worst_tenth, 0.05);
}

TEST(PublishedScores, LetThePlannerChooseAMethodNearTheBestMeasured) {
  TUTTI_PUBLISHED_TEXT(content, "strategies_networks.md");
  const std::vector<Choice> choices = choices_of(predictions(content));
  ASSERT_EQ(choices.size(), 24u);
  std::size_t good = 0;
  for (const Choice& choice : choices) good += choice.loss <= kTellsApart ? 1 : 0;
  EXPECT_GE(good, 23u);
}

}  // namespace
}  // namespace tutti
