// Evaluation counts every sample once, however many ranks share the work.

#include "train/evaluation.h"

#include <gtest/gtest.h>

#include <mutex>
#include <nlohmann/json.hpp>

#include "support/rank_threads.h"

namespace tutti {
namespace {

/// Masked text of which sample i is guessed right in i of its words; the loss of a word is 0.125.
class Texts : public Dataset {
 public:
  explicit Texts(int64_t size) : size_(size) {}
  const std::string& name() const override { return name_; }
  int64_t size() const override { return size_; }
  SampleTraits traits() const override { return {SampleKind::masked_text, {4}, 0, 10, 3}; }
  Batch make_batch(int64_t count, bool /*pinned*/) const override {
    return {{torch::empty({count}, torch::kLong)}, torch::zeros({count}, torch::kLong), count};
  }
  void load(Pick pick, int64_t row, Batch& batch) const override {
    batch.inputs[0].data_ptr<int64_t>()[row] = pick.index;
  }

 private:
  int64_t size_;
  std::string name_ = "texts";
};

class Guesser : public Model {
 public:
  Guesser() : Model("guesser") {}
  std::vector<torch::Tensor> outputs(const Batch&) override { return {}; }
  torch::Tensor loss(const Batch&) override { return {}; }
  EvalSums count(const Batch& batch) override {
    const auto samples = static_cast<double>(batch.size), sum = batch.inputs[0].sum().item<double>();
    return {
        SampleKind::masked_text,
        torch::tensor({samples, 0.125 * 10 * samples, 10 * samples, sum, 10 * samples, 0.0, samples}, torch::kDouble)};
  }
};

TEST(Evaluation, AddsExactlyOverRanksAlsoWhereSomeHaveNothingToDo) {
  for (const int64_t samples : {2, 10})
    for (const int ranks : {1, 2, 3}) {
      std::mutex mutex;
      const auto errors = run_rank_threads(ranks, [&](Communicator& comm) {
        Guesser model;
        const EvalCounts counts = *evaluate(model, std::make_shared<Texts>(samples), comm, {2, 0, 1, {}, false});
        const std::lock_guard<std::mutex> lock(mutex);
        EXPECT_EQ(counts.samples, samples);
        EXPECT_EQ(counts.metrics[0].hits, samples * (samples - 1) / 2);
        EXPECT_EQ(counts.metrics[0].of, 10 * samples);
        EXPECT_EQ(counts.metrics[1].of, samples);
        EXPECT_EQ(counts.loss(), 0.125);
      });
      for (const std::string& error : errors) EXPECT_EQ(error, "");
    }
}

TEST(Evaluation, NamesEveryMetricInRecordsAndTheFirstForPeople) {
  EvalCounts counts = nothing_counted(SampleKind::segmentation);
  counts.samples = 4;
  counts.metrics[0] = {"dice", 3, 4};
  counts.metrics[1] = {"iou", 3, 5};
  const nlohmann::json results = test_results(counts);
  EXPECT_EQ(results.at("test_dice"), 0.75);
  EXPECT_EQ(results.at("test_iou"), 0.6);
  EXPECT_EQ(results.at("test_samples"), 4);
  EXPECT_EQ(test_headline(counts), "test dice 0.7500");
  EXPECT_EQ(test_headline(nothing_counted(SampleKind::masked_text)), "test masked accuracy 0.0000");
}

}  // namespace
}  // namespace tutti
