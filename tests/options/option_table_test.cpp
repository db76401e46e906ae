#include "options/option_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "tutti/error.h"

namespace tutti {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

const TrainOption& find(const std::vector<TrainOption>& table, const std::string& name) {
  return *std::find_if(table.begin(), table.end(), [&](const TrainOption& option) { return option.name == name; });
}

/// Another value than it has, whatever its type.
void change(const TrainOption& option) {
  std::visit(
      [](const auto& field) {
        using Field = std::decay_t<decltype(field)>;
        if constexpr (std::is_same_v<Field, Scaled>)
          std::visit([](auto* value) { *value += 7; }, field.value);
        else if constexpr (std::is_same_v<Field, Negated>)
          *field.value = !*field.value;
        else if constexpr (std::is_same_v<Field, std::optional<bool>*>)
          *field = true;
        else if constexpr (std::is_same_v<Field, bool*>)
          *field = !*field;
        else if constexpr (std::is_same_v<Field, std::string*>)
          *field = field->empty() ? "other" : *field == "sgd" ? "lamb" : "";
        else
          *field += 7;
      },
      option.field);
}

std::string refusal(const TrainOptions& options, const KnownNames& names = {}) {
  try {
    check_values(options, names);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(OptionTable, HasEachNameAndEachKeyOnce) {
  TrainOptions values;
  std::set<std::string> names, keys;
  for (const TrainOption& option : train_option_table(values)) {
    EXPECT_TRUE(option.name.empty() || names.insert(option.name).second) << option.name;
    EXPECT_TRUE(option.key.empty() || keys.insert(option.key).second) << option.key;
    EXPECT_FALSE(option.name.empty() && option.key.empty());
    EXPECT_FALSE(option.help.empty()) << option.name;
    EXPECT_FALSE(option.group.empty()) << option.name;
  }
  EXPECT_GT(names.size(), 70u);
}

TEST(OptionTable, WritesEveryOptionAndReadsItBack) {
  TrainOptions values;
  for (const TrainOption& option : train_option_table(values))
    if (!option.key.empty()) change(option);
  const json written = describe_options(values), usual = describe_options({});
  for (const auto& [key, value] : written.items()) EXPECT_NE(value, usual.at(key)) << key;
  EXPECT_EQ(describe_options(read_options(written)), written);
  EXPECT_EQ(describe_options(read_options(json::parse(written.dump()))), written);
}

TEST(OptionTable, ReadsRecordsOfOtherVersions) {
  const TrainOptions read = read_options({{"batch", 7}, {"device_used", "cpu"}, {"augment", nullptr}});
  EXPECT_EQ(read.batch, 7);
  EXPECT_EQ(read.epochs, TrainOptions().epochs);
  EXPECT_FALSE(read.data.augment.has_value());
  EXPECT_THROW(read_options({{"batch", "many"}}), Error);
}

TEST(OptionTable, LetsARunGoOnWithTheOptionsThatItHad) {
  TrainOptions had;
  had.batch = 8;
  had.steps = 100;
  had.data.seed = 7;
  had.evaluate = false;
  had.name = "then";
  TrainOptions now;
  now.batch = 32;
  now.epochs = 5;
  now.name = "now";
  TrainOptions with_batch = now;
  take_over(with_batch, had, [](const std::string& name) { return name == "batch"; });
  EXPECT_EQ(with_batch.batch, 32) << "given";
  EXPECT_EQ(with_batch.steps, 100);
  EXPECT_EQ(with_batch.epochs, had.epochs);
  EXPECT_EQ(with_batch.data.seed, 7U) << "an option without a name";
  EXPECT_FALSE(with_batch.evaluate);
  EXPECT_EQ(with_batch.name, "now") << "not recorded";
  take_over(now, had, [](const std::string& name) { return name == "epochs"; });
  EXPECT_EQ(now.epochs, 5);
  EXPECT_EQ(now.steps, 0) << "which would go before --epochs";
}

TEST(OptionTable, KeepsTheKeysAndDefaultsOfRecords) {
  const json usual = describe_options({});
  const json expected = {{"recipe", ""},
                         {"model", "mnist-cnn"},
                         {"width", 0},
                         {"depth", 0},
                         {"checkpoint_activations", false},
                         {"weights", ""},
                         {"data", "digits"},
                         {"data_folder", ""},
                         {"data_seed", 1},
                         {"train_size", 0},
                         {"test_size", 0},
                         {"augment", nullptr},
                         {"tokens", 0},
                         {"vocabulary", ""},
                         {"data_phrases", false},
                         {"val_fraction", 0.0},
                         {"image_size", 0},
                         {"crop_scale", 0.08},
                         {"flip", true},
                         {"image_mean", "0.485,0.456,0.406"},
                         {"image_std", "0.229,0.224,0.225"},
                         {"skip_bad_samples", false},
                         {"label", ""},
                         {"text", ""},
                         {"epochs", 3},
                         {"steps", 0},
                         {"batch", 64},
                         {"accumulate", 1},
                         {"optimizer", "sgd"},
                         {"momentum", 0.9},
                         {"nesterov", false},
                         {"beta1", 0.9},
                         {"beta2", 0.999},
                         {"epsilon", 1e-8},
                         {"weight_decay", 0.0},
                         {"clip_norm", 0.0},
                         {"lr", 0.05},
                         {"scale_lr", false},
                         {"schedule", "constant"},
                         {"warmup_steps", 0},
                         {"step_epochs", 1.0},
                         {"gamma", 0.7},
                         {"seed", 1},
                         {"strategy", "buckets"},
                         {"bucket_bytes", 26214400},
                         {"first_bucket_bytes", 1048576},
                         {"fusion_bytes", 134217728},
                         {"fusion_cycle_s", 0.001},
                         {"partition_bytes", 4194304},
                         {"credit_bytes", 0},
                         {"servers", 0},
                         {"ranks_per_node", 1},
                         {"wire", "fp32"},
                         {"topk_ratio", 0.01},
                         {"transport", "auto"},
                         {"by_node", false},
                         {"link_startup_us", 0.0},
                         {"link_gbps", 0.0},
                         {"device", "auto"},
                         {"precision", "fp32"},
                         {"deterministic", false},
                         {"workers", 1},
                         {"eval_every", 1},
                         {"eval_batch", 250}};
  for (const auto& [key, value] : expected.items()) EXPECT_EQ(usual.at(key), value) << key;
}

TEST(OptionTable, RefusesWhatIsOutOfRange) {
  EXPECT_EQ(refusal({}), "");
  TrainOptions options;
  options.ranks = 65;
  EXPECT_THAT(refusal(options), HasSubstr("--ranks is 65: it must be from 1 to 64"));
  options = {};
  options.topk_ratio = 0;
  EXPECT_THAT(refusal(options), HasSubstr("--topk-ratio is 0: it must be above 0 and at most 1"));
  options = {};
  options.strategy_options.bucket_bytes = 0;
  EXPECT_THAT(refusal(options), HasSubstr("--bucket-mb is 0: it must be above 0"));
  options = {};
  options.optimizer.beta2 = 1;
  EXPECT_THAT(refusal(options), HasSubstr("--beta2 is 1: it must be at least 0 and below 1"));
}

TEST(OptionTable, RefusesUnknownNamesAndSuggestsOthers) {
  TrainOptions options;
  options.model = "resnet5";
  EXPECT_EQ(refusal(options), "");  // nobody has said which there are
  EXPECT_THAT(refusal(options, {{"resnet18", "resnet50"}}), HasSubstr("unknown model 'resnet5'; did you mean"));
  options = {};
  options.strategy = "auto";
  EXPECT_EQ(refusal(options), "");
  options.strategy = "bps";
  EXPECT_THAT(refusal(options), HasSubstr("unknown strategy 'bps'; did you mean 'bsp'?"));
}

TEST(OptionTable, GivesSizesInTheUnitsOfPeople) {
  TrainOptions options;
  EXPECT_EQ(default_text(find(train_option_table(options), "bucket-mb")), "25");
  EXPECT_EQ(default_text(find(train_option_table(options), "fusion-cycle-ms")), "1");
  EXPECT_EQ(default_text(find(train_option_table(options), "ranks")), "");
}

TEST(OptionTable, SaysWhoReadsAnOption) {
  TrainOptions options;
  const auto table = train_option_table(options);
  EXPECT_THAT(find(table, "bucket-mb").help, HasSubstr("buckets, dear, zero1: "));
  EXPECT_THAT(find(table, "beta1").help, HasSubstr("adam, adamw, lamb: "));
}

TEST(OptionTable, KnowsWhatIsNotForRecipesAndSweeps) {
  const std::vector<std::string> keys = recipe_keys();
  const auto has = [&](const char* key) { return std::find(keys.begin(), keys.end(), key) != keys.end(); };
  EXPECT_TRUE(has("batch") && has("no-eval") && has("augment") && has("no-augment") && has("ranks"));
  EXPECT_TRUE(has("data-path") && has("data-folder")) << "the older name";
  EXPECT_FALSE(has("recipe") || has("resume") || has("summary") || has("help") || has(""));
  for (const char* name : {"name", "runs", "resume", "auto-resume", "summary", "trace", "hosts", "max-restarts"})
    EXPECT_TRUE(is_set_by_sweeps(name)) << name;
  for (const char* name : {"batch", "recipe", "trace-steps", "anything"}) EXPECT_FALSE(is_set_by_sweeps(name)) << name;
}

TEST(OptionTable, KnowsWhatReportsNameWhereItIsUnusual) {
  EXPECT_EQ(usual_options(), (json{{"accumulate", 1},
                                   {"width", 0},
                                   {"depth", 0},
                                   {"freeze", ""},
                                   {"tokens", 0},
                                   {"image_size", 0},
                                   {"cache_bytes", 0},
                                   {"bucket_bytes", 26214400},
                                   {"first_bucket_bytes", 1048576},
                                   {"partition_bytes", 4194304},
                                   {"credit_bytes", 0},
                                   {"fusion_bytes", 134217728},
                                   {"fusion_cycle_s", 0.001},
                                   {"ranks_per_node", 1},
                                   {"checkpoint_activations", false},
                                   {"deterministic", false},
                                   {"graph", true},
                                   {"kernel_search", 0}}));
}

}  // namespace
}  // namespace tutti
