#include "runs/run_comparison.h"

#include <gmock/gmock.h>

#include "runs/run_folder.h"

namespace tutti {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class RunComparisons : public RunFolders {
 protected:
  /// Loss 1 at the 10th step, falling by `slope` every 10 steps, for 50 steps of `seconds` each.
  RunFacts falling(const std::string& name, const TrainOptions& options, int ranks, double slope,
                   double seconds) const {
    RecordFile file = records_of(name);
    file.add(beginning(options, ranks), 1000);
    for (int i = 1; i <= 5; ++i) file.add(progress(10L * i, 1 - slope * (i - 1)), 1000 + 10 * seconds * i);
    return facts(name);
  }
};

TEST_F(RunComparisons, NameTheOptionsThatDiffer) {
  const RunComparison comparison =
      compare_runs({falling("a", options_of(16, "bsp"), 1, 0.1, 1), falling("b", options_of(16, "dear"), 1, 0.1, 1)});
  ASSERT_EQ(comparison.options.size(), 1U);
  EXPECT_EQ(comparison.options[0].name, "strategy");
  EXPECT_EQ(comparison.options[0].texts, (std::vector<std::string>{"bsp", "dear"}));
}

TEST_F(RunComparisons, ShowLossesAtSamplesThatAllHaveSeen) {
  // a: 160 to 800 samples. b, on two ranks, 320 to 1600. At 480 samples a is at step 30, b half way from 10 to 20.
  const RunComparison comparison =
      compare_runs({falling("a", options_of(16), 1, 0.1, 1), falling("b", options_of(16), 2, 0.2, 1)});
  EXPECT_EQ(comparison.losses_from, "progress");
  EXPECT_EQ(comparison.losses.front().samples, 320);
  EXPECT_NEAR(comparison.losses.front().losses[0], 0.9, 1e-12);
  EXPECT_NEAR(comparison.losses.front().losses[1], 1.0, 1e-12);
  EXPECT_EQ(comparison.losses.back().samples, 800);
  EXPECT_NEAR(comparison.losses.back().losses[0], 0.6, 1e-12);
  EXPECT_NEAR(comparison.losses.back().losses[1], 0.7, 1e-12);  // between step 20 and 30
}

TEST_F(RunComparisons, TellHowLongEachTookToALossThatAllReached) {
  // a comes to 0.6 at its end, after 50 s; b to 0.6 at step 30, after 60 s.
  const RunComparison comparison =
      compare_runs({falling("a", options_of(16), 1, 0.1, 1), falling("b", options_of(16), 1, 0.2, 2)});
  EXPECT_NEAR(*comparison.common_loss, 0.6, 1e-12);
  EXPECT_NEAR(comparison.common_loss_s[0], 50, 1e-9);
  EXPECT_NEAR(comparison.common_loss_s[1], 60, 1e-9);
  EXPECT_THAT(describe(comparison), AllOf(HasSubstr("time to loss 0.6000"), HasSubstr("60.00 s (1.20 ×)")));
}

TEST_F(RunComparisons, TakeEpochsWhereThereAreNoLossesOfSteps) {
  std::vector<RunFacts> runs;
  for (const char* const name : {"a", "b"}) {
    RecordFile file = records_of(name);
    file.add(beginning(options_of(16), 1), 1000);
    EpochRecord epoch;
    epoch.epoch = 1;
    epoch.step = 10;
    epoch.train_loss = 0.5;
    file.add(epoch, 1010);
    runs.push_back(facts(name));
  }
  const RunComparison comparison = compare_runs(runs);
  EXPECT_EQ(comparison.losses_from, "epoch");
  ASSERT_EQ(comparison.losses.size(), 1U);
  EXPECT_EQ(comparison.losses[0].samples, 160);
}

TEST_F(RunComparisons, OfRunsWithoutLossesStillCompareOptions) {
  std::vector<RunFacts> runs;
  for (const int64_t batch : {8, 16}) {
    records_of(std::to_string(batch)).add(beginning(options_of(batch), 1), 1000);
    runs.push_back(facts(std::to_string(batch)));
  }
  const RunComparison comparison = compare_runs(runs);
  EXPECT_EQ(comparison.losses_from, "");
  EXPECT_FALSE(comparison.common_loss);
  EXPECT_THAT(describe(comparison), AllOf(HasSubstr("batch"), Not(HasSubstr("time to loss"))));
  EXPECT_EQ(to_json(comparison)["common_loss"], nullptr);
}

TEST_F(RunComparisons, SayWhetherFinishedRunsHaveTheSameWeights) {
  std::vector<RunFacts> runs;
  for (const char* const name : {"a", "b", "c"}) {
    RecordFile file = records_of(name);
    file.add(beginning(options_of(16), 1), 1000);
    SummaryRecord summary;
    summary.steps = 1;
    summary.weights_sha256 = name[0] == 'c' ? "other" : "same";
    file.add(summary, 1001);
    runs.push_back(facts(name));
  }
  EXPECT_FALSE(*compare_runs(runs).has_same_weights);
  runs.pop_back();
  EXPECT_TRUE(*compare_runs(runs).has_same_weights);
  records_of("d").add(beginning(options_of(16), 1), 1000);
  runs.push_back(facts("d"));
  EXPECT_FALSE(compare_runs(runs).has_same_weights.has_value());
}

}  // namespace
}  // namespace tutti
