#include "train/best_test.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "tutti/error.h"

namespace tutti {
namespace {

EvalCounts test_of(double loss, int64_t hits) {
  EvalCounts counts = nothing_counted(SampleKind::images);
  counts.samples = counts.loss_terms = 100;
  counts.loss_sum = loss * 100;
  counts.metrics[0] = {"accuracy", hits, 100};
  return counts;
}

TEST(BestTestOfARun, TakesTheLargestShareAndTheSmallestLoss) {
  BestTest share("accuracy", SampleKind::images), loss("loss", SampleKind::images);
  EXPECT_TRUE(share.add(test_of(1, 50), {10, 1, 0}));
  EXPECT_TRUE(loss.add(test_of(1, 50), {10, 1, 0}));
  EXPECT_FALSE(share.add(test_of(0.5, 50), {20, 2, 0})) << "as good is not better";
  EXPECT_TRUE(loss.add(test_of(0.5, 50), {20, 2, 0}));
  EXPECT_EQ(share.tests_since(), 1);
  EXPECT_EQ(loss.tests_since(), 0);
  EXPECT_EQ(share.text(), "accuracy 0.5000 after epoch 1");
  EXPECT_EQ(loss.step(), 20);
}

TEST(BestTestOfARun, IsNeverALossThatIsNoNumber) {
  BestTest loss("loss", SampleKind::images);
  EXPECT_FALSE(loss.add(test_of(std::numeric_limits<double>::quiet_NaN(), 1), {1, 1, 0}));
  EXPECT_FALSE(loss.has_any());
  EXPECT_TRUE(loss.add(test_of(9, 1), {2, 2, 0}));
}

TEST(BestTestOfARun, JudgesByTheModelsFirstMetricUnlessOneIsNamed) {
  EXPECT_EQ(BestTest("", SampleKind::segmentation).metric(), "dice");
  EXPECT_EQ(BestTest("iou", SampleKind::segmentation).metric(), "iou");
  try {
    BestTest("acuracy", SampleKind::images);
    FAIL() << "no error";
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean 'accuracy'"), std::string::npos) << error.what();
  }
}

TEST(BestTestOfARun, GoesOnCountingAfterACheckpoint) {
  BestTest before("loss", SampleKind::images);
  before.add(test_of(1, 50), {10, 1, 0});
  before.add(test_of(2, 50), {20, 2, 0});
  const nlohmann::json state = nlohmann::json::parse(before.state().dump());
  BestTest after("loss", SampleKind::images);
  after.restore(state);
  EXPECT_FALSE(after.add(test_of(1, 50), {30, 3, 0}));
  EXPECT_EQ(after.tests_since(), 2);
  EXPECT_EQ(after.step(), 10);
  BestTest other("accuracy", SampleKind::images);
  other.restore(state);
  other.restore(nullptr);
  EXPECT_FALSE(other.has_any()) << "another metric's numbers say nothing";
}

}  // namespace
}  // namespace tutti
