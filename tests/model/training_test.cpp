// Every model, small: it learns a batch by heart, and counts what it is judged by.

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/optim/adam.h>

#include <cmath>
#include <tuple>

#include "small_models.h"

namespace tutti {
namespace {

class Training : public testing::TestWithParam<std::tuple<std::string, Place>> {
 protected:
  void SetUp() override {
    at::set_num_threads(1);  // more would wait for each other rather than compute: the networks are small
    torch::manual_seed(3);
    model_ = make_model(name_, small_options(name_));
    batch_ = example_batch(small_options(name_).data, 4);
    move_to(place_, *model_, batch_);
  }

  const std::string name_ = std::get<0>(GetParam());
  const Place place_ = std::get<1>(GetParam());
  std::shared_ptr<Model> model_;
  Batch batch_;
};

TEST_P(Training, LearnsABatchByHeart) {
  torch::optim::Adam optimizer(model_->parameters(), torch::optim::AdamOptions(2e-3));
  const bool is_large = name_.rfind("resnet", 0) == 0;
  double first = 0, last = 0;
  for (int step = 0; step < (is_large ? 6 : 25); ++step) {
    optimizer.zero_grad();
    torch::Tensor loss;
    {
      const Bf16Autocast autocast(place_.is_bf16);
      loss = model_->loss(batch_);
    }
    ASSERT_EQ(loss.dim(), 0);
    loss.backward();
    optimizer.step();
    last = loss.item<double>();
    if (step == 0) first = last;
  }
  EXPECT_LT(last, 0.8 * first);
  for (const auto& parameter : model_->named_parameters())
    EXPECT_TRUE(parameter.value().grad().defined()) << parameter.key() << " has no gradient";
}

TEST_P(Training, CountsWhatItIsJudgedBy) {
  model_->eval();
  const torch::NoGradGuard no_grad;
  const Bf16Autocast autocast(place_.is_bf16);
  const EvalCounts counts = model_->evaluate(batch_);
  EXPECT_EQ(counts.samples, 4);
  EXPECT_GT(counts.loss(), 0);
  const EvalCounts expected = nothing_counted(small_options(name_).data.kind);
  ASSERT_EQ(counts.metrics.size(), expected.metrics.size());
  for (std::size_t i = 0; i < counts.metrics.size(); ++i) {
    EXPECT_EQ(counts.metrics[i].name, expected.metrics[i].name);
    EXPECT_GT(counts.metrics[i].of, 0);
    EXPECT_LE(counts.metrics[i].hits, counts.metrics[i].of);
  }
}

TEST_P(Training, GivesTheSameLossAsOnACpu) {
  if (place_.device.is_cpu()) return;
  // In eval mode: dropout draws other numbers elsewhere.
  model_->eval();
  const torch::NoGradGuard no_grad;
  const Bf16Autocast autocast(place_.is_bf16);
  const double here = model_->loss(batch_).item<double>();
  torch::manual_seed(3);
  const auto model = make_model(name_, small_options(name_));
  const Batch batch = example_batch(small_options(name_).data, 4);
  model->eval();
  const double there = model->loss(batch).item<double>();
  EXPECT_NEAR(here, there, std::abs(there) * (place_.is_bf16 ? 0.05 : 1e-4));
}

INSTANTIATE_TEST_SUITE_P(Models, Training,
                         testing::Combine(testing::ValuesIn(model_names()), testing::ValuesIn(places())),
                         [](const auto& test) { return test_name(std::get<0>(test.param), std::get<1>(test.param)); });

TEST(Bert, AddsTheLossOfMaskedWordsAndOfTheNextSentence) {
  torch::manual_seed(3);
  const ModelOptions options = small_options("bert-base");
  const auto model = make_model("bert-base", options);
  model->eval();
  const torch::NoGradGuard no_grad;
  Batch batch = example_batch(options.data, 4);
  batch.inputs[4][0].fill_(-100);
  batch.inputs[4][2][1].fill_(-100);
  const EvalCounts counts = model->evaluate(batch);
  EXPECT_EQ(counts.loss_terms, 8);
  EXPECT_EQ(counts.metrics[0].of, 8);
  const double with_words = model->loss(batch).item<double>();
  batch.inputs[4].fill_(-100);
  const double next_alone = model->loss(batch).item<double>();
  EXPECT_NEAR(with_words - next_alone, counts.loss(), 1e-5);
  EXPECT_TRUE(std::isfinite(next_alone));
  EXPECT_EQ(model->evaluate(batch).loss_terms, 0);
}

TEST(Bert, DoesNotSeePaddingNorTheRestOfTheBatch) {
  torch::manual_seed(3);
  const ModelOptions options = small_options("bert-base");
  const auto model = make_model("bert-base", options);
  model->eval();
  const torch::NoGradGuard no_grad;
  Batch batch = example_batch(options.data, 2);
  batch.inputs[2].slice(1, 8).zero_();
  batch.inputs[3].remainder_(8);
  const double before = model->loss(batch).item<double>();
  batch.inputs[0].slice(1, 8).fill_(7);
  EXPECT_NEAR(model->loss(batch).item<double>(), before, 1e-6);
}

TEST(Transformer, DoesNotSeePadding) {
  torch::manual_seed(3);
  const ModelOptions options = small_options("transformer");
  const auto model = make_model("transformer", options);
  model->eval();
  const torch::NoGradGuard no_grad;
  Batch batch = example_batch(options.data, 3);
  batch.inputs[0].slice(1, 5).zero_();
  const double before = model->loss(batch).item<double>();
  batch.inputs[0] = batch.inputs[0].slice(1, 0, 5).contiguous();
  EXPECT_NEAR(model->loss(batch).item<double>(), before, 1e-5);
  batch.inputs[0].zero_();  // no token at all
  EXPECT_TRUE(std::isfinite(model->loss(batch).item<double>()));
}

TEST(ResNet, TrainsOnASingleSampleThatIsASinglePixelInTheEnd) {
  const ModelOptions options = small_options("resnet18");
  const auto model = make_model("resnet18", options);
  EXPECT_TRUE(std::isfinite(model->loss(example_batch(options.data, 1)).item<double>()));
  for (const auto& buffer : model->named_buffers())
    EXPECT_TRUE(buffer.value().to(torch::kFloat).isfinite().all().item<bool>()) << buffer.key();
  EXPECT_EQ(model->named_buffers()["layer4.1.bn2.num_batches_tracked"].item<int64_t>(), 1);
}

TEST(UNet, LossOfABatchIsTheMeanOverItsImages) {
  torch::manual_seed(3);
  const ModelOptions options = small_options("unet");
  const auto model = make_model("unet", options);
  model->eval();
  const torch::NoGradGuard no_grad;
  const Batch batch = example_batch(options.data, 3);
  double sum = 0;
  for (int64_t i = 0; i < 3; ++i) {
    const Batch one{{batch.inputs[0].slice(0, i, i + 1)}, batch.target.slice(0, i, i + 1), 1};
    sum += model->loss(one).item<double>();
  }
  EXPECT_NEAR(model->loss(batch).item<double>(), sum / 3, 1e-5);
  EXPECT_NEAR(model->evaluate(batch).loss(), sum / 3, 1e-5);
}

TEST(Metrics, DiceAndIouComeFromPixelsCountedOverAllImages) {
  const torch::Tensor found = torch::tensor({1.F, 1.F, -1.F, -1.F, 2.F, -3.F, -1.F, 1.F}).view({2, 1, 2, 2});
  const torch::Tensor wanted = torch::tensor({1.F, 0.F, 1.F, 0.F, 1.F, 0.F, 0.F, 1.F}).view({2, 1, 2, 2});
  EvalCounts counts = read_counts(count_pixels(found, wanted, torch::tensor({0.5F, 0.25F})));
  EXPECT_EQ(counts.metrics[0].hits, 2 * 3);
  EXPECT_EQ(counts.metrics[0].of, 2 * 3 + 1 + 1);
  EXPECT_EQ(counts.metrics[1].hits, 3);
  EXPECT_EQ(counts.metrics[1].of, 3 + 1 + 1);
  EXPECT_DOUBLE_EQ(counts.loss_sum, 0.75);
  counts.add(counts);
  EXPECT_EQ(counts.samples, 4);
  EXPECT_DOUBLE_EQ(counts.metrics[1].value(), 0.6);
}

}  // namespace
}  // namespace tutti
