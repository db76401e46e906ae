// Trained weights are found with their options, and tests of them count what training's own tests count.

#include "inference/trained_evaluation.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <numeric>

#include "comm/shm/shm.h"
#include "inference/small_trained_model.h"
#include "options/option_table.h"
#include "record/record_file.h"
#include "tutti/error.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

const auto kNobodyListens = [](int64_t, int64_t) {};
const auto kNothingIsGiven = [](const std::string&) { return false; };

TEST(TrainedEvaluation, CountsWhatTrainingCounts) {
  const FolderForWeights folder;
  for (const auto& [model, data] : {std::pair{"mnist-cnn", "digits"},
                                    {"transformer", "synthetic"},
                                    {"unet", "synthetic"},
                                    {"bert-base", "synthetic"}}) {
    TrainedModel trained = untrained(folder, small_run(model, data));
    const auto alone = make_shm_communicator({});
    const EvalCounts expected = *evaluate(*trained.model, trained.data.test, *alone, {7, 1, 4, trained.place, false});
    const TrainedEvaluation result = evaluate_trained(trained, kNobodyListens);
    EXPECT_EQ(nlohmann::json(test_results(result.counts)), nlohmann::json(test_results(expected))) << model;
    EXPECT_EQ(result.confusion.has_value(), expected.metrics.size() == 1) << model;
    if (!result.confusion) continue;
    const std::vector<int64_t>& counts = result.confusion->counts;
    EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), int64_t{0}), 30) << model;
    int64_t hits = 0;
    for (std::size_t i = 0; i < result.confusion->classes(); ++i) hits += result.confusion->at(i, i);
    EXPECT_EQ(hits, expected.metrics[0].hits) << model;
    const nlohmann::json json = to_json(trained, result);
    EXPECT_EQ(json.at("test_accuracy"), expected.metrics[0].value()) << model;
    EXPECT_EQ(json.at("classes").size(), result.confusion->classes()) << model;
  }
}

TEST(TrainedWeights, HaveTheOptionsOfTheirRunUnlessOthersAreGiven) {
  const FolderForWeights folder;
  TrainOptions had = small_run("mnist-cnn", "digits");
  had.data.test_size = 12;
  had.threads = 7;
  const TrainedModel trained = untrained(folder, had);
  RunRecord run;
  run.config = config_record(describe_options(had), 2, "cpu");
  RecordFile(folder.path() / kRecordsFile).add(run, 0);
  for (const std::string place : {"", "best"}) {
    make_folders(folder.path() / place);
    if (!place.empty()) fs::copy_file(folder.path() / kWeightsFile, folder.path() / place / kWeightsFile);
    const TrainedWeights found = find_trained((folder.path() / place).string(), "");
    ASSERT_TRUE(found.had.has_value()) << place;
    const TrainOptions options = options_of(found, {}, kNothingIsGiven);
    EXPECT_EQ(options.data.test_size, 12) << place;
    EXPECT_EQ(options.threads, -1) << "those of a rank";
  }
  TrainOptions given;
  given.data.name = "mnist";
  const TrainOptions options = options_of(find_trained(folder.path().string(), ""), given,
                                          [](const std::string& name) { return name == "data"; });
  EXPECT_EQ(options.data.name, "mnist");
  EXPECT_EQ(options.data.test_size, 0) << "other data, other sizes";
}

TEST(TrainedWeights, OfAFileAloneNeedAModel) {
  const FolderForWeights folder;
  untrained(folder, small_run("mnist-cnn", "digits"));
  const TrainedWeights found = find_trained((folder.path() / kWeightsFile).string(), "");
  EXPECT_FALSE(found.had.has_value());
  EXPECT_THROW(options_of(found, {}, kNothingIsGiven), UsageError);
  try {
    open_trained(found.file, small_run("unet", "synthetic"));
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("does not hold weights of model 'unet'"), std::string::npos);
  }
}

}  // namespace
}  // namespace tutti
