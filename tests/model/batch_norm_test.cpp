// Batch normalization with what follows it: on a CPU it is torch's, on a GPU Tutti's own kernels against torch's
// operations in double precision.

#include "model/ops/batch_norm.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "engine/step_graph.h"
#include "model/ops/plain.h"
#include "support/gpu.h"
#include "tutti/captured_step.h"

namespace tutti {
namespace {

using torch::nn::BatchNorm2d;
using Tensors = std::vector<torch::Tensor>;

enum class Kind { plain, relu, add_relu };

constexpr Kind kKinds[] = {Kind::plain, Kind::relu, Kind::add_relu};

/// Prime sizes, channels that are no multiple of 8 or of 64, one image, one row, many channels.
const std::vector<std::vector<int64_t>> kShapes = {{1, 8, 1, 2},    {2, 16, 1, 1},   {1, 1, 3, 5},     {2, 3, 7, 5},
                                                   {1, 64, 13, 11}, {5, 72, 7, 3},   {3, 130, 5, 5},   {64, 64, 17, 19},
                                                   {2, 2048, 3, 3}, {7, 17, 31, 29}, {4, 256, 56, 56}, {3, 1000, 2, 1}};

torch::Tensor apply(Kind kind, const torch::Tensor& x, BatchNorm2d norm, const torch::Tensor& residual) {
  if (kind == Kind::plain) return batch_norm(x, norm);
  return kind == Kind::relu ? batch_norm_relu(x, norm) : batch_norm_add_relu(x, norm, residual);
}

torch::Tensor torch_apply(Kind kind, const torch::Tensor& x, BatchNorm2d norm, const torch::Tensor& residual) {
  const torch::Tensor y = norm(x);
  if (kind == Kind::plain) return y;
  return kind == Kind::relu ? y.relu() : (y + residual).relu();
}

BatchNorm2d make_norm(int64_t channels, torch::Device device = torch::kCPU) {
  BatchNorm2d norm(channels);
  const torch::NoGradGuard no_grad;
  norm->weight.uniform_(-0.5, 2);
  norm->bias.normal_();
  norm->running_mean.normal_();
  norm->running_var.uniform_(0.5, 2);
  norm->to(device);
  return norm;
}

torch::Tensor channels_last(const torch::Tensor& tensor, torch::ScalarType type) {
  return tensor.to(torch::TensorOptions(torch::kCUDA).dtype(type)).contiguous(torch::MemoryFormat::ChannelsLast);
}

/// Of one forward and backward: the result, gradients of x, weight, bias and residual, running averages.
Tensors run(Kind kind, bool with_torch, const Tensors& inputs, BatchNorm2d norm, const torch::Tensor& y_gradient) {
  norm->zero_grad();
  const torch::Tensor x = inputs[0].detach().requires_grad_(), residual = inputs[1].detach().requires_grad_();
  const torch::Tensor y = with_torch ? torch_apply(kind, x, norm, residual) : apply(kind, x, norm, residual);
  y.backward(y_gradient);
  return {y.detach(),
          x.grad(),
          norm->weight.grad().clone(),
          norm->bias.grad().clone(),
          kind == Kind::add_relu ? residual.grad() : y_gradient,
          norm->running_mean.clone(),
          norm->running_var.clone()};
}

const char* const kNames[] = {"result",           "gradient of x",        "gradient of weight",
                              "gradient of bias", "gradient of residual", "running mean",
                              "running variance"};

/// Twice the rounding of one result in its precision, and a little of the largest one, for sums. `terms`: how large
/// those are that cancel each other in it.
void expect_close(const torch::Tensor& actual, const torch::Tensor& expected, double terms, const std::string& what) {
  ASSERT_EQ(actual.sizes(), expected.sizes()) << what;
  const double unit = actual.scalar_type() == torch::kBFloat16 ? 1.0 / 256 : 1e-6;
  const torch::Tensor a = actual.cpu().to(torch::kDouble), e = expected.cpu().to(torch::kDouble);
  const torch::Tensor allowed = e.abs() * unit + e.abs().max() * 2e-5 + terms * 2e-6;
  const torch::Tensor excess = (a - e).abs() - allowed;
  EXPECT_LE(excess.max().item<double>(), 0) << what;
}

constexpr std::size_t kGradientOfX = 1;

TEST(BatchNormOnACpu, IsTorchs) {
  torch::manual_seed(1);
  for (const Kind kind : kKinds) {
    const Tensors inputs{torch::randn({3, 5, 7, 2}), torch::randn({3, 5, 7, 2})};
    BatchNorm2d norm = make_norm(5);
    const auto same = std::dynamic_pointer_cast<torch::nn::BatchNorm2dImpl>(norm->clone());
    const torch::Tensor y_gradient = torch::randn({3, 5, 7, 2});
    const Tensors own = run(kind, false, inputs, norm, y_gradient);
    const Tensors torchs = run(kind, true, inputs, BatchNorm2d(same), y_gradient);
    for (std::size_t i = 0; i < own.size(); ++i) EXPECT_TRUE(torch::equal(own[i], torchs[i])) << kNames[i];
  }
}

TEST(BatchNormKernels, AgreeWithTorchOverOddShapes) {
  TUTTI_NEEDS_GPU();
  torch::manual_seed(2);
  for (const auto type : {torch::kFloat, torch::kBFloat16})
    for (const auto& shape : kShapes)
      for (const Kind kind : kKinds) {
        const torch::Tensor x = channels_last(torch::randn(shape) * 3 + 1, type);
        const torch::Tensor residual = channels_last(torch::randn(shape), type);
        BatchNorm2d norm = make_norm(shape[1], torch::kCUDA);
        BatchNorm2d exact(std::dynamic_pointer_cast<torch::nn::BatchNorm2dImpl>(norm->clone()));
        exact->to(torch::kDouble);
        const Tensors exact_inputs{x.to(torch::kDouble), residual.to(torch::kDouble)};
        // No gradient where rounding decides on which side of zero a value lies.
        torch::Tensor before_relu;
        {
          const torch::NoGradGuard no_grad;
          BatchNorm2d unchanged(std::dynamic_pointer_cast<torch::nn::BatchNorm2dImpl>(exact->clone()));
          before_relu = unchanged(exact_inputs[0]) +
                        (kind == Kind::add_relu ? exact_inputs[1] : torch::zeros_like(exact_inputs[0]));
        }
        const torch::Tensor y_gradient =
            channels_last(torch::randn(shape), type).masked_fill_(before_relu.abs() < 1e-4, 0);
        const Tensors own = run(kind, false, {x, residual}, norm, y_gradient);
        const Tensors torchs = run(kind, true, exact_inputs, exact, y_gradient.to(torch::kDouble));
        EXPECT_EQ(own[0].scalar_type(), type);
        EXPECT_TRUE(own[0].is_contiguous(torch::MemoryFormat::ChannelsLast));
        EXPECT_TRUE(own[1].is_contiguous(torch::MemoryFormat::ChannelsLast));
        const double largest_factor =
            (exact->weight.abs() / (exact_inputs[0].var({0, 2, 3}, false) + 1e-5).sqrt()).max().item<double>();
        const double terms = largest_factor * y_gradient.abs().max().item<double>();
        for (std::size_t i = 0; i < own.size(); ++i)
          expect_close(own[i], torchs[i], i == kGradientOfX ? terms : 0,
                       fmt::format("{} of kind {}, {} channels, {} rows, {}", kNames[i], static_cast<int>(kind),
                                   shape[1], x.numel() / shape[1], type == torch::kFloat ? "float" : "bfloat16"));
      }
}

TEST(BatchNormKernels, TakeGradientsInAnyLayout) {
  TUTTI_NEEDS_GPU();
  torch::manual_seed(3);
  const torch::Tensor x = channels_last(torch::randn({4, 24, 5, 7}), torch::kFloat);
  BatchNorm2d norm = make_norm(24, torch::kCUDA);
  const torch::Tensor whole = channels_last(torch::randn({4, 48, 5, 7}), torch::kFloat);
  const torch::Tensor half = whole.narrow(1, 24, 24);
  const Tensors expected = run(Kind::relu, false, {x, x}, norm, half.contiguous(torch::MemoryFormat::ChannelsLast));
  for (const torch::Tensor& y_gradient : {half, half.contiguous()}) {
    const Tensors actual = run(Kind::relu, false, {x, x}, norm, y_gradient);
    for (const std::size_t i : {1, 2, 3}) EXPECT_TRUE(torch::equal(actual[i], expected[i])) << kNames[i];
  }
}

TEST(BatchNormKernels, AddUpTheGradientsOfTwoUses) {
  TUTTI_NEEDS_GPU();
  torch::manual_seed(8);
  for (const auto type : {torch::kFloat, torch::kBFloat16})
    for (const int64_t channels : {24, 13})
      for (const bool has_residual : {false, true}) {
        const std::vector<int64_t> shape{5, channels, 7, 3};
        const torch::Tensor x = channels_last(torch::randn(shape), type).requires_grad_();
        const torch::Tensor residual = channels_last(torch::randn(shape), type).requires_grad_();
        BatchNorm2d norm = make_norm(channels, torch::kCUDA);
        // Small whole numbers: their sums are exact in any precision.
        const torch::Tensor dense = channels_last(torch::randint(-8, 9, shape, torch::kFloat), type);
        const torch::Tensor wide = channels_last(torch::randint(-8, 9, {5, 2 * channels, 7, 3}, torch::kFloat), type);
        const torch::Tensor slice = wide.narrow(1, channels == 24 ? 24 : 5, channels);
        const auto gradients = [&](const torch::Tensor& first, const torch::Tensor& second) {
          norm->zero_grad();
          x.mutable_grad().reset();
          residual.mutable_grad().reset();
          const TwoUses y =
              has_residual ? batch_norm_add_relu_for_two(x, norm, residual) : batch_norm_relu_for_two(x, norm);
          EXPECT_TRUE(torch::equal(y.first, y.second));
          Tensors outputs, given;
          if (first.defined()) outputs.push_back(y.first), given.push_back(first);
          if (second.defined()) outputs.push_back(y.second), given.push_back(second);
          torch::autograd::backward(outputs, given);
          Tensors all{x.grad(), norm->weight.grad().clone(), norm->bias.grad().clone()};
          if (has_residual) all.push_back(residual.grad());
          return all;
        };
        const auto expect_equal = [&](const Tensors& actual, const Tensors& expected, const char* what) {
          for (std::size_t i = 0; i < expected.size(); ++i)
            EXPECT_TRUE(torch::equal(actual[i], expected[i])) << what << ", tensor " << i << ", " << channels;
        };
        const Tensors expected = gradients(dense + slice, {});
        expect_equal(gradients(dense, slice), expected, "a dense one and a slice");
        expect_equal(gradients(slice, dense), expected, "a slice and a dense one");
        expect_equal(gradients(slice.contiguous(), dense), expected, "another layout");
        expect_equal(gradients({}, dense + slice), expected, "the second alone");
        expect_equal(gradients(slice, slice), gradients(slice + slice, {}), "two slices");
      }
}

TEST(BatchNormKernels, KeepTheSpreadOfValuesFarFromZero) {
  TUTTI_NEEDS_GPU();
  torch::manual_seed(4);
  const torch::Tensor x = channels_last(torch::randn({8, 64, 31, 31}) + 1000, torch::kFloat);
  BatchNorm2d norm(64);
  norm->to(torch::kCUDA);
  const torch::Tensor y = batch_norm(x, norm).to(torch::kDouble);
  const torch::Tensor exact = x.to(torch::kDouble);
  const torch::Tensor mean = exact.mean({0, 2, 3}, true), variance = exact.var({0, 2, 3}, false, true);
  EXPECT_LT((y - (exact - mean) / (variance + 1e-5).sqrt()).abs().max().item<double>(), 2e-4);
}

TEST(BatchNormKernels, GiveTheSameBitsEachTime) {
  TUTTI_NEEDS_GPU();
  torch::manual_seed(5);
  for (const Kind kind : kKinds) {
    const Tensors inputs{channels_last(torch::randn({32, 64, 56, 56}), torch::kBFloat16),
                         channels_last(torch::randn({32, 64, 56, 56}), torch::kBFloat16)};
    const torch::Tensor y_gradient = channels_last(torch::randn({32, 64, 56, 56}), torch::kBFloat16);
    BatchNorm2d norm = make_norm(64, torch::kCUDA);
    const torch::Tensor mean = norm->running_mean.clone(), variance = norm->running_var.clone();
    const Tensors first = run(kind, false, inputs, norm, y_gradient);
    for (int i = 0; i < 5; ++i) {
      norm->running_mean.copy_(mean);
      norm->running_var.copy_(variance);
      const Tensors again = run(kind, false, inputs, norm, y_gradient);
      for (std::size_t j = 0; j < again.size(); ++j) EXPECT_TRUE(torch::equal(first[j], again[j])) << kNames[j];
    }
  }
}

TEST(BatchNormKernels, CanBeRecorded) {
  TUTTI_NEEDS_GPU();
  const ComputeStream stream(torch::kCUDA);
  torch::manual_seed(6);
  const Tensors inputs{channels_last(torch::randn({8, 64, 9, 9}), torch::kBFloat16),
                       channels_last(torch::randn({8, 64, 9, 9}), torch::kBFloat16)};
  const torch::Tensor y_gradient = channels_last(torch::randn({8, 64, 9, 9}), torch::kBFloat16);
  BatchNorm2d norm = make_norm(64, torch::kCUDA);
  Tensors results;
  // Not run before: the kernels' memory is made while recording.
  const auto graph = record_graph([&] { results = run(Kind::add_relu, false, inputs, norm, y_gradient); });
  const torch::Tensor mean = norm->running_mean.clone(), variance = norm->running_var.clone();
  for (int i = 0; i < 3; ++i) {
    inputs[0].normal_();
    norm->running_mean.copy_(mean);
    norm->running_var.copy_(variance);
    graph->replay();
    Tensors recorded;
    for (const torch::Tensor& result : results) recorded.push_back(result.clone());
    norm->running_mean.copy_(mean);
    norm->running_var.copy_(variance);
    const Tensors eager = run(Kind::add_relu, false, inputs, norm, y_gradient);
    for (std::size_t j = 0; j < eager.size(); ++j) EXPECT_TRUE(torch::equal(recorded[j], eager[j])) << kNames[j];
  }
}

TEST(BatchNormKernels, LeaveTheRestToTorch) {
  TUTTI_NEEDS_GPU();
  torch::manual_seed(7);
  BatchNorm2d norm = make_norm(16, torch::kCUDA);
  const torch::Tensor contiguous = torch::randn({4, 16, 5, 5}, torch::kCUDA);
  const torch::Tensor last = contiguous.contiguous(torch::MemoryFormat::ChannelsLast);
  const auto torchs = [&](const torch::Tensor& x) {
    return torch::batch_norm(x, norm->weight, norm->bias, {}, {}, true, 0.1, 1e-5, true).relu();
  };
  EXPECT_TRUE(torch::equal(batch_norm_relu(contiguous, norm), torchs(contiguous)));
  {
    const PlainOperations plain;
    EXPECT_TRUE(torch::equal(batch_norm_relu(last, norm), torchs(last)));
  }
  EXPECT_EQ(batch_norm_relu(last.narrow(0, 0, 0), norm).numel(), 0);
  EXPECT_TRUE(
      torch::isfinite(batch_norm_relu(last.narrow(0, 0, 1).narrow(2, 0, 1).narrow(3, 0, 1), norm)).all().item<bool>())
      << "one value per channel";
  norm->eval();
  EXPECT_TRUE(torch::equal(batch_norm_relu(last, norm), norm(last).relu()));
}

}  // namespace
}  // namespace tutti
