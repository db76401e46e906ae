#include "sweep/sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tutti/error.h"

namespace tutti::sweep {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Sweep parse(const std::string& text, bool quick = false) {
  return parse_sweep(text, "my.yaml", quick,
                     {"--help", "--model", "--strategy", "--ranks", "--batch", "--steps", "--width", "--name"},
                     [](const std::string& name, const std::string& value) {
                       return value == "wrong" ? name + " cannot be wrong" : "";
                     });
}

void expect_complaint(const std::string& text, const std::string& complaint, bool quick = false) {
  try {
    parse(text, quick);
    ADD_FAILURE() << "nothing wrong with:\n" << text;
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr(complaint)) << text;
  }
}

const std::string kWhole = R"(title: a study
axes:
  model: [mnist-cnn, resnet18]
  strategy: [bsp, dear]
  network: [slow, own]
  ranks: 2
compare: model
options: {batch: 16, steps: 20}
where:
  - {when: {model: resnet18, strategy: [bsp, dear]}, set: {batch: 4}}
networks:
  slow: {gbps: 0.5, startup-us: 20, note: a slow one}
  own: {note: the one there is}
leave-out:
  - {model: resnet18, network: slow}
baseline: {ranks: 1}
repeats: 3
warmup-steps: 5
timeout-minutes: 1.5
trace: true
quick:
  axes: {model: mnist-cnn, width: [1, 2]}
  where: []
  leave-out: []
  compare: width
  repeats: 1
)";

TEST(SweepFile, IsReadAsItIsWritten) {
  const Sweep sweep = parse(kWhole);
  EXPECT_EQ(sweep.title, "a study");
  ASSERT_EQ(sweep.axes.size(), 4U);
  EXPECT_EQ(sweep.axes[1].name, "strategy");
  EXPECT_THAT(sweep.axes[1].values, ElementsAre("bsp", "dear"));
  EXPECT_THAT(sweep.axes[3].values, ElementsAre("2"));
  EXPECT_EQ(sweep.compare, "model");
  EXPECT_EQ(sweep.options, (Settings{{"batch", "16"}, {"steps", "20"}}));
  ASSERT_EQ(sweep.special_cases.size(), 1U);
  EXPECT_EQ(sweep.special_cases[0].when, (Pattern{{"model", {"resnet18"}}, {"strategy", {"bsp", "dear"}}}));
  EXPECT_EQ(sweep.special_cases[0].set, (Settings{{"batch", "4"}}));
  EXPECT_EQ(sweep.networks.at("slow").gbps, 0.5);
  EXPECT_EQ(sweep.networks.at("slow").startup_us, 20);
  EXPECT_TRUE(sweep.networks.at("slow").is_slowed());
  EXPECT_FALSE(sweep.networks.at("own").is_slowed());
  EXPECT_EQ(sweep.leave_out.size(), 1U);
  EXPECT_EQ(sweep.baseline, (Settings{{"ranks", "1"}}));
  EXPECT_EQ(sweep.repeats, 3);
  EXPECT_EQ(sweep.warmup_steps, 5);
  EXPECT_EQ(sweep.timeout_minutes, 1.5);
  EXPECT_TRUE(sweep.trace);
  EXPECT_EQ(sweep.text, kWhole);
}

TEST(SweepFile, TakesWhatQuickSaysInPlaceOfTheSameKeys) {
  const Sweep sweep = parse(kWhole, true);
  ASSERT_EQ(sweep.axes.size(), 2U);
  EXPECT_EQ(sweep.axes[1].name, "width");
  EXPECT_EQ(sweep.compare, "width");
  EXPECT_EQ(sweep.repeats, 1);
  EXPECT_TRUE(sweep.leave_out.empty());
  EXPECT_EQ(sweep.warmup_steps, 5);
}

TEST(SweepFile, IsRefusedWithTheLineOfAValueThatAnOptionCannotHave) {
  expect_complaint("axes:\n  strategy:\n    - bsp\n    - wrong\n", "my.yaml:4: strategy cannot be wrong");
  expect_complaint("axes:\n  batch: wrong\n", "my.yaml:2: batch cannot be wrong");
  expect_complaint("axes: {ranks: [1]}\noptions:\n  steps: wrong\n", "my.yaml:3: steps cannot be wrong");
  expect_complaint("axes: {ranks: [1, 2]}\nbaseline:\n  strategy: wrong\n", "my.yaml:3: strategy cannot be wrong");
  expect_complaint("axes: {ranks: [1, 2]}\nwhere:\n  - when: {ranks: 2}\n    set: {steps: wrong}\n",
                   "my.yaml:4: steps cannot be wrong");
}

TEST(SweepFile, HasSpecialCasesForBothForms) {
  // Those of the full form stand above, and name values that the small one does not have; and the other way round.
  const std::string text =
      "axes: {model: [mnist-cnn, resnet18], ranks: [2]}\n"
      "where:\n  - {when: {model: resnet18}, set: {batch: 4}}\n  - {when: {model: bert-base}, set: {batch: 2}}\n"
      "leave-out:\n  - {ranks: 2, model: resnet18}\n"
      "quick:\n  axes: {model: [mnist-cnn, bert-base]}\n";
  EXPECT_EQ(parse(text).special_cases.size(), 2U);
  EXPECT_EQ(parse(text, true).special_cases.size(), 2U);
  EXPECT_EQ(expand(parse(text, true)).size(), 2U);
  expect_complaint(text + "  where:\n    - {when: {model: vgg}, set: {batch: 2}}\n",
                   "the axis 'model' has no value 'vgg'", true);
}

TEST(SweepFile, IsRefusedWithTheLineOfWhatIsWrong) {
  expect_complaint("axes: {ranks: [1, 2]", "my.yaml:1: not YAML");
  expect_complaint("- a\n- b\n", "my.yaml:1: a sweep needs lines like");
  expect_complaint("title: x\n", "a sweep needs 'axes'");
  expect_complaint("axes: {ranks: [1]}\nrepeat: 3\n", "my.yaml:2: unknown key 'repeat'; did you mean 'repeats'?");
  expect_complaint("axes:\n  strateggy: [bsp]\n", "my.yaml:2: unknown axis 'strateggy'; did you mean 'strategy'?");
  expect_complaint("axes:\n  ranks: [1, 1]\n", "my.yaml:2: the axis 'ranks' has '1' twice");
  expect_complaint("axes:\n  ranks: [zero]\n", "'zero'");
  expect_complaint("axes:\n  ranks: []\n", "'ranks' needs values");
  expect_complaint("axes: {ranks: [1]}\naxes: {ranks: [2]}\n", "'axes' is there twice");
  expect_complaint("axes: {ranks: [1]}\noptions: {bach: 3}\n", "did you mean 'batch'?");
  expect_complaint("axes: {ranks: [1]}\nrepeats: 0\n", "my.yaml:2: 'repeats' is '0'");
  expect_complaint("axes: {ranks: [1]}\ntrace: perhaps\n", "'trace' is true or false");
  expect_complaint("axes: {ranks: [1]}\nleave-out: [{ranks: 7}]\n", "the axis 'ranks' has no value '7'");
  expect_complaint("axes: {ranks: [1]}\nleave-out: [{batch: 7}]\n", "no axis 'batch'");
  expect_complaint("axes: {ranks: [1]}\nleave-out: [{}]\n", "would leave out all");
  expect_complaint("axes: {ranks: [1]}\nwhere: [{when: {ranks: 1}}]\n", "both 'when' and 'set'");
  expect_complaint("axes: {ranks: [1]}\ncompare: model\n", "no axis 'model'");
  expect_complaint("axes: {network: [1gbe]}\n", "does not say what the network '1gbe' is");
  expect_complaint("axes: {ranks: [1]}\n", "no section 'quick'", true);
}

TEST(SweepFile, CannotSetWhatTheSweepItselfDecides) {
  expect_complaint("axes: {ranks: [1]}\noptions: {name: mine}\n", "unknown option of `tutti train` 'name'");
}

}  // namespace
}  // namespace tutti::sweep
