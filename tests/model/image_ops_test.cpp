// Pooling, and joining what goes across with what comes from below: torch's on a CPU, Tutti's own kernels on a GPU.

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/torch_compat.h"
#include "model/ops/max_pool.h"
#include "model/ops/stem_conv.h"
#include "model/ops/up_beside.h"
#include "support/gpu.h"

namespace tutti {
namespace {

using Tensors = std::vector<torch::Tensor>;

constexpr auto kLast = torch::MemoryFormat::ChannelsLast;

torch::Tensor on_gpu(const torch::Tensor& tensor, torch::ScalarType type) {
  return tensor.to(torch::TensorOptions(torch::kCUDA).dtype(type)).contiguous(kLast);
}

struct Window {
  int64_t size, padding;
};

TEST(MaxPool, IsTorchsOnACpu) {
  torch::manual_seed(1);
  const torch::Tensor x = torch::randn({2, 3, 9, 8});
  EXPECT_TRUE(torch::equal(max_pool(x, 3, 2, 1), torch::max_pool2d(x, 3, 2, 1)));
  EXPECT_TRUE(torch::equal(max_pool(x, 2, 2), torch::max_pool2d(x, 2, 2)));
}

TEST(MaxPoolKernels, EqualTorchOverOddShapes) {
  TUTTI_NEEDS_GPU();
  torch::manual_seed(2);
  for (const auto type : {torch::kFloat, torch::kBFloat16})
    for (const Window& window : {Window{2, 0}, Window{3, 1}})
      for (const auto& shape : std::vector<std::vector<int64_t>>{{1, 8, 2, 2},
                                                                 {1, 1, 2, 3},
                                                                 {3, 5, 7, 11},
                                                                 {2, 64, 13, 5},
                                                                 {5, 72, 2, 31},
                                                                 {4, 64, 56, 56},
                                                                 {1, 2048, 3, 3}}) {
        // Few different numbers: there are ties. Whole gradients: sums of them are exact.
        const torch::Tensor x = on_gpu(torch::randint(-3, 4, shape, torch::kFloat), type).requires_grad_();
        const torch::Tensor same = x.detach().cpu().to(torch::kFloat).contiguous().requires_grad_();
        const torch::Tensor y = max_pool(x, window.size, 2, window.padding);
        const torch::Tensor expected = torch::max_pool2d(same, window.size, 2, window.padding);
        EXPECT_TRUE(y.is_contiguous(kLast));
        EXPECT_TRUE(torch::equal(y.detach().cpu().to(torch::kFloat), expected.detach())) << y.sizes();
        const torch::Tensor gradient = torch::randint(-8, 9, expected.sizes(), torch::kFloat);
        y.backward(on_gpu(gradient, type));
        expected.backward(gradient);
        EXPECT_TRUE(torch::equal(x.grad().cpu().to(torch::kFloat), same.grad())) << y.sizes();
      }
}

TEST(MaxPoolKernels, LetNotANumberWin) {
  TUTTI_NEEDS_GPU();
  torch::Tensor x = torch::zeros({1, 8, 4, 4});
  x[0][3][1][1] = std::numeric_limits<float>::quiet_NaN();
  x[0][4] = -std::numeric_limits<float>::infinity();
  const torch::Tensor y = max_pool(on_gpu(x, torch::kBFloat16), 2, 2).cpu();
  EXPECT_TRUE(y[0][3][0][0].isnan().item<bool>());
  EXPECT_EQ(y[0][3][1][1].item<float>(), 0);
  EXPECT_EQ(y[0][4][0][0].item<float>(), -std::numeric_limits<float>::infinity());
}

TEST(StemConv, IsTorchsOnACpu) {
  torch::manual_seed(5);
  const torch::Tensor x = torch::randn({2, 3, 12, 10}), weight = torch::randn({8, 3, 7, 7});
  EXPECT_TRUE(torch::equal(stem_conv(x, weight), torch::conv2d(x, weight, {}, 2, 3)));
}

TEST(StemConvKernels, AgreeWithTorch) {
  TUTTI_NEEDS_GPU();
  torch::manual_seed(6);
  for (const auto& shape :
       std::vector<std::vector<int64_t>>{{2, 3, 32, 46}, {3, 1, 28, 28}, {1, 4, 2, 6}, {2, 2, 8, 8}, {2, 3, 9, 8}}) {
    // Small whole numbers, which bfloat16 has.
    const torch::Tensor x = torch::randint(-8, 9, shape, torch::kFloat);
    const torch::Tensor weight = torch::randint(-4, 5, {16, shape[1], 7, 7}, torch::kFloat);
    const torch::Tensor own_weight = weight.cuda().requires_grad_(),
                        exact_weight = weight.to(torch::kDouble).requires_grad_();
    torch::Tensor y;
    {
      const Bf16Autocast autocast(true);
      y = stem_conv(on_gpu(x, torch::kFloat), own_weight);
    }
    const torch::Tensor expected = torch::conv2d(x.to(torch::kDouble), exact_weight, {}, 2, 3);
    ASSERT_EQ(y.sizes(), expected.sizes());
    EXPECT_TRUE(y.is_contiguous(kLast));
    EXPECT_TRUE(torch::allclose(y.detach().cpu().to(torch::kDouble), expected.detach(), 1.0 / 256, 0)) << x.sizes();
    const torch::Tensor gradient = torch::randint(-2, 3, expected.sizes(), torch::kFloat);
    y.backward(on_gpu(gradient, torch::kBFloat16));
    expected.backward(gradient.to(torch::kDouble));
    EXPECT_TRUE(torch::allclose(own_weight.grad().cpu().to(torch::kDouble), exact_weight.grad(), 1.0 / 128, 0))
        << x.sizes();
  }
}

torch::Tensor torch_up_beside(const Tensors& in) {
  return torch::cat({in[0], torch::conv_transpose2d(in[1], in[2], in[3], 2)}, 1);
}

TEST(UpBeside, IsTorchsOnACpu) {
  torch::manual_seed(3);
  const Tensors in{torch::randn({2, 8, 6, 4}), torch::randn({2, 16, 3, 2}), torch::randn({16, 8, 2, 2}),
                   torch::randn({8})};
  EXPECT_TRUE(torch::equal(up_beside(in[0], in[1], in[2], in[3]), torch_up_beside(in)));
  const torch::Tensor larger = torch::randn({2, 8, 7, 5});
  const torch::Tensor padded = up_beside(larger, in[1], in[2], in[3]);
  EXPECT_EQ(padded.sizes(), (std::vector<int64_t>{2, 16, 7, 5}));
  EXPECT_TRUE(torch::equal(padded.narrow(1, 0, 8), larger));
}

TEST(UpBesideKernels, AgreeWithTorch) {
  TUTTI_NEEDS_GPU();
  torch::manual_seed(4);
  at::globalContext().setAllowTF32CuDNN(false);
  for (const auto type : {torch::kFloat, torch::kBFloat16})
    for (const int64_t channels : {8, 64, 72}) {
      const Tensors exact{torch::randn({3, 24, 10, 14}, torch::kDouble), torch::randn({3, 16, 5, 7}, torch::kDouble),
                          torch::randn({16, channels, 2, 2}, torch::kDouble), torch::randn({channels}, torch::kDouble)};
      Tensors own, expected;
      for (std::size_t i = 0; i < exact.size(); ++i) {
        own.push_back(i < 3 ? on_gpu(exact[i], type) : exact[i].to(torch::kCUDA).to(torch::kFloat));
        expected.push_back(own[i].detach().cpu().to(torch::kDouble).requires_grad_());
        own[i].requires_grad_();
      }
      const torch::Tensor y = up_beside(own[0], own[1], own[2], own[3]), e = torch_up_beside(expected);
      const torch::Tensor gradient = on_gpu(torch::randn(e.sizes()), type);
      y.backward(gradient);
      e.backward(gradient.cpu().to(torch::kDouble));
      const double bound = type == torch::kFloat ? 1e-5 : 1.0 / 64;
      const auto expect_close = [&](const torch::Tensor& actual, const torch::Tensor& wanted, std::size_t i) {
        const torch::Tensor difference = (actual.detach().cpu().to(torch::kDouble) - wanted.detach()).abs().max();
        EXPECT_LE(difference.item<double>(), bound * wanted.abs().max().item<double>()) << i << ", " << channels;
      };
      EXPECT_TRUE(y.is_contiguous(kLast));
      expect_close(y, e, own.size());
      for (std::size_t i = 0; i < own.size(); ++i) expect_close(own[i].grad(), expected[i].grad(), i);
    }
}

}  // namespace
}  // namespace tutti
