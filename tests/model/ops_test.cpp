// The fused operations compute what torch's own layers compute: values and gradients, ties and negatives included.

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>
#include <functional>
#include <limits>

#include "model/layers.h"
#include "model/ops/add_norm.h"
#include "model/ops/bias_activation.h"
#include "model/ops/conv_pool.h"
#include "model/ops/dropout.h"
#include "model/ops/first_conv.h"
#include "model/ops/linear.h"

namespace tutti {
namespace {

using Tensors = std::vector<torch::Tensor>;
using Operation = std::function<torch::Tensor(const Tensors&)>;

/// The operation's result, and the gradients of a fixed weighted sum of it with respect to each input that wants one.
Tensors result_and_gradients(const Operation& operation, const Tensors& inputs) {
  Tensors leaves;
  for (const torch::Tensor& input : inputs) {
    leaves.push_back(input.detach().clone(torch::MemoryFormat::Preserve).set_requires_grad(input.requires_grad()));
  }
  const torch::Tensor result = operation(leaves);
  const torch::Tensor weights = torch::arange(result.numel(), torch::kFloat).mul(0.37).sin().view(result.sizes());
  (result * weights).sum().backward();
  Tensors all{result.detach()};
  for (const torch::Tensor& leaf : leaves) {
    if (leaf.requires_grad()) all.push_back(leaf.grad());
  }
  return all;
}

/// Largest difference relative to the largest expected value.
double difference(const torch::Tensor& actual, const torch::Tensor& expected) {
  if (actual.sizes() != expected.sizes()) return std::numeric_limits<double>::infinity();
  if (actual.numel() == 0) return 0;
  return ((actual - expected).abs().max() / expected.abs().max().clamp_min(1e-20)).item<double>();
}

void expect_same(const Operation& actual, const Operation& expected, const Tensors& inputs, double tolerance) {
  const Tensors a = result_and_gradients(actual, inputs);
  const Tensors e = result_and_gradients(expected, inputs);
  ASSERT_EQ(a.size(), e.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_LE(difference(a[i], e[i]), tolerance) << (i == 0 ? "result" : "gradient ") << i;
  }
}

torch::Tensor fused_conv_pool(const Tensors& in) { return conv3x3_relu_pool2(in[0], in[1], in[2]); }
torch::Tensor torch_conv_pool(const Tensors& in) {
  return torch::max_pool2d(torch::relu(torch::conv2d(in[0], in[1], in[2])), 2);
}
torch::Tensor fused_first_conv(const Tensors& in) { return first_conv3x3_relu(in[0], in[1], in[2]); }
torch::Tensor torch_first_conv(const Tensors& in) { return torch::relu(torch::conv2d(in[0], in[1], in[2])); }

Tensors conv_inputs(int64_t count, int64_t inputs, int64_t outputs, int64_t height, int64_t width) {
  return {torch::randn({count, inputs, height, width}).contiguous(torch::MemoryFormat::ChannelsLast).requires_grad_(),
          torch::randn({outputs, inputs, 3, 3}).div(std::sqrt(9.0 * inputs)).requires_grad_(),
          torch::randn({outputs}).mul(0.1).requires_grad_()};
}

/// Small whole numbers, for which Winograd's way is exact: equal values stay equal.
Tensors whole_number_inputs(int64_t count, int64_t inputs, int64_t outputs, int64_t side) {
  return {torch::randint(-1, 2, {count, inputs, side, side}, torch::kFloat).requires_grad_(),
          torch::randint(-1, 2, {outputs, inputs, 3, 3}, torch::kFloat).requires_grad_(),
          torch::randint(-1, 2, {outputs}, torch::kFloat).requires_grad_()};
}

class Ops : public ::testing::Test {
 protected:
  void SetUp() override {
    torch::manual_seed(7);
    at::set_num_threads(1);
  }
};

TEST_F(Ops, ConvPoolMatchesTorchAtTheSizesOfMnistCnn) {
  expect_same(fused_conv_pool, torch_conv_pool, conv_inputs(3, 32, 64, 26, 26), 2e-6);
}

TEST_F(Ops, ConvPoolMatchesTorchAtOtherSizes) {
  // One window; odd sides, of which pooling leaves out the last row and column; several blocks of channels.
  expect_same(fused_conv_pool, torch_conv_pool, conv_inputs(1, 32, 64, 4, 4), 2e-6);
  expect_same(fused_conv_pool, torch_conv_pool, conv_inputs(2, 32, 64, 9, 13), 2e-6);
  expect_same(fused_conv_pool, torch_conv_pool, conv_inputs(2, 64, 128, 12, 7), 2e-6);
}

TEST_F(Ops, ConvPoolMatchesTorchWhereItHasNoFastWay) {
  expect_same(fused_conv_pool, torch_conv_pool, conv_inputs(2, 3, 5, 8, 8), 2e-6);
}

TEST_F(Ops, ConvPoolGivesTheGradientToTheFirstOfEqualsAndNoneBelowZero) {
  const Tensors inputs = whole_number_inputs(2, 32, 64, 10);
  expect_same(fused_conv_pool, torch_conv_pool, inputs, 1e-6);
  // The extreme case: everything is equal, once positive, once zero and once negative.
  for (const float bias : {1.F, 0.F, -1.F}) {
    const Tensors equal{torch::zeros({1, 32, 6, 6}).requires_grad_(), torch::ones({64, 32, 3, 3}).requires_grad_(),
                        torch::full({64}, bias).requires_grad_()};
    expect_same(fused_conv_pool, torch_conv_pool, equal, 1e-5);  // sums that cancel
  }
}

TEST_F(Ops, ConvPoolTakesInputAndGradientInAnyLayout) {
  Tensors inputs = conv_inputs(2, 32, 64, 8, 8);
  const Operation transposed = [](const Tensors& in) {
    return conv3x3_relu_pool2(in[0].contiguous().transpose(2, 3), in[1], in[2])
        .contiguous(torch::MemoryFormat::ChannelsLast);
  };
  const Operation expected = [](const Tensors& in) { return torch_conv_pool({in[0].transpose(2, 3), in[1], in[2]}); };
  expect_same(transposed, expected, inputs, 2e-6);
}

TEST_F(Ops, ConvPoolWorksWithoutAGradientForItsInput) {
  Tensors inputs = conv_inputs(2, 32, 64, 8, 8);
  inputs[0].set_requires_grad(false);
  expect_same(fused_conv_pool, torch_conv_pool, inputs, 2e-6);
}

TEST_F(Ops, ConvPoolPassesNanOn) {
  Tensors inputs = conv_inputs(1, 32, 64, 8, 8);
  const torch::NoGradGuard no_grad;
  inputs[0][0][0][3][3] = std::nanf("");
  const torch::Tensor result = fused_conv_pool(inputs);
  EXPECT_TRUE(result.isnan().any().item<bool>());
  // Every window whose convolutions see the bad value shows it.
  EXPECT_TRUE(torch_conv_pool(inputs).isnan().logical_and(result.isnan().logical_not()).any().item<bool>() == false);
}

TEST_F(Ops, ConvPoolAcceptsAnEmptyBatch) {
  const Tensors inputs = conv_inputs(0, 32, 64, 8, 8);
  const Tensors all = result_and_gradients(fused_conv_pool, inputs);
  EXPECT_EQ(all[0].sizes(), (torch::IntArrayRef{0, 64, 3, 3}));
  EXPECT_EQ(all[2].abs().sum().item<float>(), 0);
}

TEST_F(Ops, ThreadsChangeGradientsByRoundingOnly) {
  const Tensors inputs = conv_inputs(5, 32, 64, 12, 12);
  const Tensors one = result_and_gradients(fused_conv_pool, inputs);
  at::set_num_threads(3);
  const Tensors three = result_and_gradients(fused_conv_pool, inputs);
  const Tensors again = result_and_gradients(fused_conv_pool, inputs);
  at::set_num_threads(1);
  for (size_t i = 0; i < one.size(); ++i) {
    EXPECT_LE(difference(three[i], one[i]), 1e-6);
    EXPECT_TRUE(three[i].equal(again[i]));
  }
}

TEST_F(Ops, FirstConvMatchesTorch) {
  for (const int64_t outputs : {32, 64}) {
    Tensors inputs = conv_inputs(3, 1, outputs, 28, 17);
    inputs[0].set_requires_grad(false);
    expect_same(fused_first_conv, torch_first_conv, inputs, 2e-6);
  }
}

TEST_F(Ops, FirstConvMatchesTorchWhereItHasNoFastWay) {
  expect_same(fused_first_conv, torch_first_conv, conv_inputs(2, 1, 32, 8, 8), 2e-6);  // wants a gradient for its input
  Tensors inputs = conv_inputs(2, 3, 20, 8, 8);
  inputs[0].set_requires_grad(false);
  expect_same(fused_first_conv, torch_first_conv, inputs, 2e-6);
}

TEST_F(Ops, FirstConvGivesNoGradientAtZeroAndPassesNanOn) {
  Tensors inputs = whole_number_inputs(2, 1, 32, 9);
  inputs[0].set_requires_grad(false);
  expect_same(fused_first_conv, torch_first_conv, inputs, 1e-6);
  inputs[0].fill_(std::nanf(""));
  EXPECT_TRUE(fused_first_conv(inputs).isnan().all().item<bool>());
}

TEST_F(Ops, FirstConvResultIsChannelsLast) {
  const Tensors inputs = conv_inputs(2, 1, 32, 8, 8);
  const torch::NoGradGuard no_grad;
  EXPECT_TRUE(
      fused_first_conv({inputs[0].detach(), inputs[1], inputs[2]}).is_contiguous(torch::MemoryFormat::ChannelsLast));
}

TEST_F(Ops, LinearMatchesTorch) {
  const Tensors inputs{torch::randn({5, 300}).requires_grad_(), torch::randn({70, 300}).requires_grad_(),
                       torch::randn({70}).requires_grad_()};
  expect_same([](const Tensors& in) { return linear(in[0], in[1], in[2]); },
              [](const Tensors& in) { return torch::linear(in[0], in[1], in[2]); }, inputs, 2e-6);
}

TEST_F(Ops, LinearAcceptsAnEmptyBatch) {
  EXPECT_EQ(linear(torch::ones({0, 4}), torch::ones({3, 4}), torch::ones({3})).sizes(), (torch::IntArrayRef{0, 3}));
}

TEST_F(Ops, DropoutKeepsTheStatedShareAndScalesIt) {
  for (const double probability : {0.0, 0.25, 0.5, 0.9}) {
    const torch::Tensor result = dropout(torch::ones({1000, 1000}), probability);
    const double kept = result.ne(0).to(torch::kDouble).mean().item<double>();
    EXPECT_NEAR(kept, 1 - probability, 0.003);  // six deviations of a fair coin
    EXPECT_FLOAT_EQ(result.max().item<float>(), static_cast<float>(1 / (1 - probability)));
    // Neither rows nor columns nor neighbours go together.
    const torch::Tensor mask = result.ne(0).to(torch::kDouble);
    EXPECT_NEAR(mask.mean(0).std().item<double>(), std::sqrt(probability * (1 - probability) / 1000), 0.002);
    EXPECT_NEAR(mask.mean(1).std().item<double>(), std::sqrt(probability * (1 - probability) / 1000), 0.002);
    EXPECT_NEAR((mask.slice(1, 1) * mask.slice(1, 0, -1)).mean().item<double>(), (1 - probability) * (1 - probability),
                0.004);
  }
}

TEST_F(Ops, DropoutPassesTheGradientOfWhatItKept) {
  const torch::Tensor input = torch::randn({64, 77}).requires_grad_();
  const torch::Tensor result = dropout(input, 0.25);
  result.sum().backward();
  EXPECT_TRUE((input.detach() * input.grad()).allclose(result.detach()));
}

TEST_F(Ops, DropoutFollowsTheSeed) {
  const torch::Tensor input = torch::ones({100, 100});
  torch::manual_seed(3);
  const torch::Tensor first = dropout(input, 0.5);
  const torch::Tensor second = dropout(input, 0.5);
  torch::manual_seed(3);
  EXPECT_TRUE(dropout(input, 0.5).equal(first));
  EXPECT_FALSE(second.equal(first));
  EXPECT_TRUE(dropout(input, 0.5).equal(second));
}

TEST_F(Ops, DropoutDoesNotDependOnThreads) {
  const torch::Tensor input = torch::ones({1000, 1000});
  torch::manual_seed(3);
  const torch::Tensor one = dropout(input, 0.5);
  at::set_num_threads(3);
  torch::manual_seed(3);
  EXPECT_TRUE(dropout(input, 0.5).equal(one));
  at::set_num_threads(1);
}

TEST_F(Ops, DropoutKeepsTheRealTorchsWayForOtherTypes) {
  const torch::Tensor input = torch::ones({1000}, torch::kDouble);
  EXPECT_NEAR(dropout(input, 0.5).mean().item<double>(), 1, 0.2);
}

TEST(FusedOps, AreTorchsOperationsBitForBitOnACpu) {
  torch::manual_seed(3);
  Dense inner(16, 48), outer(48, 16);
  LayerNorm norm(16, 1e-5);
  const torch::NoGradGuard no_grad;
  for (const torch::Tensor& tensor : {inner.weight, inner.bias, outer.weight, outer.bias, norm.weight, norm.bias})
    tensor.normal_();
  const torch::Tensor x = torch::randn({2, 5, 16});
  const auto expect_same = [](const auto& fused, const auto& plain) {
    torch::manual_seed(4);
    const torch::Tensor actual = fused();
    torch::manual_seed(4);
    EXPECT_TRUE(torch::equal(actual, plain()));
  };
  expect_same([&] { return dense_gelu(x, inner); }, [&] { return torch::gelu(inner(x)); });
  expect_same([&] { return normalize(x, norm); }, [&] { return norm(x); });
  for (const double share : {0.0, 0.4}) {
    const auto drop = [share](const torch::Tensor& all) { return share > 0 ? dropout(all, share) : all; };
    expect_same([&] { return dense_relu(x, inner, share); }, [&] { return drop(torch::relu(inner(x))); });
    const torch::Tensor wide = inner(x);
    expect_same([&] { return add_norm(wide, outer, x, share, norm); }, [&] { return norm(x + drop(outer(wide))); });
  }
}

}  // namespace
}  // namespace tutti
