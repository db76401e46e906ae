// The kernels between a Transformer's matrix products against torch's own operations in double precision.

#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDAGuard.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/utils.h>

#include <cmath>
#include <functional>

#include "base/torch_compat.h"
#include "model/layers.h"
#include "model/ops/add_norm.h"
#include "model/ops/bias_activation.h"
#include "model/ops/gpu.h"
#include "model/ops/plain.h"
#include "support/gpu.h"

namespace tutti {
namespace {

using Tensors = std::vector<torch::Tensor>;

const auto kDevice = torch::TensorOptions(torch::kCUDA);
constexpr double kEpsilon = 1e-5;

const torch::ScalarType kTypes[] = {torch::kFloat, torch::kBFloat16};

/// Random numbers, rounded to `type`.
torch::Tensor numbers(at::IntArrayRef shape, torch::ScalarType type) {
  return torch::randn(shape, kDevice).to(type).requires_grad_();
}

torch::Tensor exact(const torch::Tensor& x) { return x.detach().to(torch::kDouble).requires_grad_(); }

/// How far apart results of a type may be: half a unit in the last place of each, and of a sum of rounding errors, in
/// fp32, as large as the largest number times `amplified`.
void expect_close(const torch::Tensor& actual, const torch::Tensor& expected, const std::string& what,
                  double amplified = 1) {
  ASSERT_TRUE(actual.defined()) << what;
  ASSERT_EQ(actual.sizes(), expected.sizes()) << what;
  if (actual.numel() == 0) return;
  const double relative = actual.scalar_type() == torch::kBFloat16 ? 1.0 / 256 : 0;
  const torch::Tensor wrong = (actual.to(torch::kDouble) - expected).abs() - relative * expected.abs();
  const double most = expected.abs().max().item<double>();
  EXPECT_LE(wrong.max().item<double>(), 2e-5 * (1 + most) * amplified) << what;
}

/// To a share of the largest number: cuBLAS may add parts of products of bf16 up in bf16.
void expect_near(const torch::Tensor& actual, const torch::Tensor& expected, double share, const std::string& what) {
  ASSERT_EQ(actual.sizes(), expected.sizes()) << what;
  const double most = expected.abs().max().item<double>();
  EXPECT_LE((actual.to(torch::kDouble) - expected).abs().max().item<double>(), share * most + 1e-5) << what;
}

std::string describe(int64_t rows, int64_t width, torch::ScalarType type) {
  return std::to_string(rows) + " × " + std::to_string(width) + " " + torch::toString(type);
}

/// Of a sum of results weighted by `weights`.
Tensors gradients(const torch::Tensor& out, const torch::Tensor& weights, const Tensors& inputs) {
  return torch::autograd::grad({out}, inputs, {weights.to(out.scalar_type())}, /*retain_graph=*/false,
                               /*create_graph=*/false, /*allow_unused=*/true);
}

constexpr int64_t kRows[] = {0, 1, 2, 5, 127, 1021};

TEST(AddNormKernel, EqualsTorchForwardAndBackward) {
  TUTTI_NEEDS_GPU();
  torch::manual_seed(1);
  for (const auto type : kTypes)
    for (const int64_t rows : kRows)
      for (const int64_t width : {1, 3, 8, 61, 64, 200, 256, 264, 300, 512, 768, 1021, 1024, 1480, 2048}) {
        const std::string what = describe(rows, width, type);
        const torch::Tensor x = numbers({rows, width}, type), residual = numbers({rows, width}, type);
        const torch::Tensor bias = numbers({width}, torch::kFloat), weight = numbers({width}, torch::kFloat);
        const torch::Tensor shift = numbers({width}, torch::kFloat);
        ASSERT_TRUE(gpu::takes_rows(x, bias)) << what;
        const torch::Tensor out = gpu::add_norm(x, bias, residual, 0, weight, shift, kEpsilon);
        EXPECT_EQ(out.scalar_type(), type);
        const Tensors inputs{exact(x), exact(bias), exact(residual), exact(weight), exact(shift)};
        const torch::Tensor expected =
            torch::layer_norm(inputs[0] + inputs[1] + inputs[2], {width}, inputs[3], inputs[4], kEpsilon);
        expect_close(out, expected, what);
        const torch::Tensor weights = numbers({rows, width}, type).detach();
        const Tensors actual = gradients(out, weights, {x, bias, residual, weight, shift});
        const Tensors wanted = gradients(expected, weights, inputs);
        // A row of one number has no variance: rounding errors are divided by the root of epsilon, which is 1/316.
        const double amplified = width == 1 ? 20 : 1;
        for (std::size_t i = 0; i < wanted.size(); ++i)
          expect_close(actual[i], wanted[i], what + ", gradient " + std::to_string(i), amplified);
      }
}

TEST(AddNormKernel, NormalizesAloneAsWell) {
  TUTTI_NEEDS_GPU();
  torch::manual_seed(2);
  for (const auto type : kTypes)
    for (const int64_t width : {5, 768}) {
      const torch::Tensor x = numbers({3, 7, width}, type);
      const torch::Tensor weight = numbers({width}, torch::kFloat), shift = numbers({width}, torch::kFloat);
      const Tensors inputs{exact(x), exact(weight), exact(shift)};
      const torch::Tensor expected = torch::layer_norm(inputs[0], {width}, inputs[1], inputs[2], kEpsilon);
      const torch::Tensor out = gpu::add_norm({}, {}, x, 0, weight, shift, kEpsilon);
      expect_close(out, expected, describe(21, width, type));
      const torch::Tensor weights = numbers({3, 7, width}, type).detach();
      const Tensors actual = gradients(out, weights, {x, weight, shift}), wanted = gradients(expected, weights, inputs);
      for (std::size_t i = 0; i < wanted.size(); ++i) expect_close(actual[i], wanted[i], describe(21, width, type));
    }
}

TEST(AddNormKernel, TakesRowsThatStartAnywhere) {
  TUTTI_NEEDS_GPU();
  torch::manual_seed(3);
  constexpr int64_t kWidth = 256;
  for (const auto type : kTypes) {
    const torch::Tensor aligned = numbers({33, kWidth}, type).detach();
    const torch::Tensor elsewhere = torch::empty({33 * kWidth + 1}, aligned.options()).slice(0, 1).view({33, kWidth});
    elsewhere.copy_(aligned);
    const torch::Tensor weight = numbers({kWidth}, torch::kFloat), shift = numbers({kWidth}, torch::kFloat);
    Tensors results[2];
    for (const bool is_elsewhere : {false, true}) {
      const torch::Tensor x = (is_elsewhere ? elsewhere : aligned).detach().requires_grad_();
      torch::manual_seed(4);
      const torch::Tensor out = gpu::add_norm(x, {}, aligned, 0.3, weight, shift, kEpsilon);
      results[is_elsewhere] = gradients(out, aligned, {x, weight, shift});
      results[is_elsewhere].push_back(out);
    }
    for (std::size_t i = 0; i < results[0].size(); ++i)
      expect_close(results[1][i], exact(results[0][i]), "result " + std::to_string(i));
  }
}

/// Runs of operations with dropout: results and gradients.
Tensors add_norm_with_dropout(const Tensors& in, double share) {
  const torch::Tensor out = gpu::add_norm(in[0], in[1], in[2], share, in[3], in[4], kEpsilon);
  Tensors all = gradients(out, in[5], {in[0], in[1], in[2], in[3], in[4]});
  all.insert(all.begin(), out.detach());
  return all;
}
Tensors relu_with_dropout(const Tensors& in, double share) {
  const torch::Tensor out = gpu::bias_relu(in[0], in[1], share);
  Tensors all = gradients(out, in[5], {in[0], in[1]});
  all.insert(all.begin(), out.detach());
  return all;
}
Tensors inputs_of(int64_t rows, int64_t width, torch::ScalarType type) {
  return {numbers({rows, width}, type),    numbers({width}, torch::kFloat), numbers({rows, width}, type),
          numbers({width}, torch::kFloat), numbers({width}, torch::kFloat), numbers({rows, width}, type).detach()};
}

void expect_share_kept(const torch::Tensor& is_kept, double share, const std::string& what) {
  const auto count = static_cast<double>(is_kept.numel());
  const double kept = is_kept.sum().item<double>();
  EXPECT_NEAR(kept, count * (1 - share), 5 * std::sqrt(count * share * (1 - share)) + 1e-5 * count) << what;
}

TEST(AddNormKernel, DropsTheSameElementsInForwardAndBackward) {
  TUTTI_NEEDS_GPU();
  torch::manual_seed(5);
  for (const auto type : kTypes)
    for (const double share : {0.1, 0.5})
      for (const int64_t width : {129, 256, 768, 1024}) {
        constexpr int64_t kCount = 500;
        const std::string what = describe(kCount, width, type);
        const Tensors in = inputs_of(kCount, width, type);
        const Tensors all = add_norm_with_dropout(in, share);
        const torch::Tensor is_kept = all[1].ne(0);  // the gradient of x
        expect_share_kept(is_kept, share, what);
        expect_share_kept(is_kept.select(0, kCount / 2), share, what + ", one row");
        const Tensors inputs{exact(in[0]), exact(in[1]), exact(in[2]), exact(in[3]), exact(in[4])};
        const torch::Tensor dropped = (inputs[0] + inputs[1]) * is_kept / (1 - share);
        const torch::Tensor expected = torch::layer_norm(inputs[2] + dropped, {width}, inputs[3], inputs[4], kEpsilon);
        // 1e-4: shares come in 65536 steps.
        EXPECT_TRUE(torch::allclose(all[0].to(torch::kDouble), expected, 1.0 / 256, 1e-3)) << what;
        const Tensors wanted = gradients(expected, in[5], inputs);
        for (std::size_t i = 0; i < wanted.size(); ++i) {
          const double most = wanted[i].abs().max().item<double>();
          EXPECT_TRUE(torch::allclose(all[i + 1].to(torch::kDouble), wanted[i], 1.0 / 256, 1e-3 * most))
              << what << ", gradient " << i;
        }
      }
}

TEST(BiasGeluKernel, EqualsTorchForwardAndBackward) {
  TUTTI_NEEDS_GPU();
  torch::manual_seed(6);
  for (const auto type : kTypes)
    for (const int64_t rows : kRows)
      for (const int64_t width : {1, 7, 64, 257, 1000, 3072, 5003}) {
        const std::string what = describe(rows, width, type);
        const torch::Tensor x = numbers({rows, width}, type), bias = numbers({width}, torch::kFloat);
        const torch::Tensor out = gpu::bias_gelu(x, bias);
        EXPECT_EQ(out.scalar_type(), type);
        const Tensors inputs{exact(x), exact(bias)};
        const torch::Tensor expected = torch::gelu(inputs[0] + inputs[1]);
        expect_close(out, expected, what);
        const torch::Tensor weights = numbers({rows, width}, type).detach();
        const Tensors actual = gradients(out, weights, {x, bias}), wanted = gradients(expected, weights, inputs);
        for (std::size_t i = 0; i < wanted.size(); ++i) expect_close(actual[i], wanted[i], what);
      }
}

TEST(BiasReluKernel, EqualsTorchForwardAndBackward) {
  TUTTI_NEEDS_GPU();
  torch::manual_seed(7);
  for (const auto type : kTypes)
    for (const int64_t rows : kRows)
      for (const int64_t width : {1, 7, 64, 257, 1024, 5003}) {
        const std::string what = describe(rows, width, type);
        const torch::Tensor x = numbers({rows, width}, type), bias = numbers({width}, torch::kFloat);
        const torch::Tensor out = gpu::bias_relu(x, bias, 0);
        const Tensors inputs{exact(x), exact(bias)};
        const torch::Tensor expected = torch::relu(inputs[0] + inputs[1]);
        expect_close(out, expected, what);
        const torch::Tensor weights = numbers({rows, width}, type).detach();
        const Tensors actual = gradients(out, weights, {x, bias}), wanted = gradients(expected, weights, inputs);
        for (std::size_t i = 0; i < wanted.size(); ++i) expect_close(actual[i], wanted[i], what);
      }
}

TEST(BiasReluKernel, PassesNoGradientWhereItDropped) {
  TUTTI_NEEDS_GPU();
  torch::manual_seed(8);
  for (const auto type : kTypes)
    for (const int64_t width : {131, 1024}) {
      const torch::Tensor x = (torch::rand({300, width}, kDevice) + 1).to(type).requires_grad_();
      const torch::Tensor bias = torch::zeros({width}, kDevice).requires_grad_();
      const torch::Tensor out = gpu::bias_relu(x, bias, 0.1);
      expect_share_kept(out.ne(0), 0.1, describe(300, width, type));
      const Tensors actual = gradients(out, torch::ones_like(out), {x, bias});
      EXPECT_TRUE(torch::equal(actual[0].ne(0), out.ne(0)));
      EXPECT_TRUE(torch::allclose(out.to(torch::kDouble), x.to(torch::kDouble) * out.ne(0) / 0.9, 1.0 / 256, 1e-4));
      EXPECT_TRUE(torch::allclose(actual[1].to(torch::kDouble), out.ne(0).to(torch::kDouble).sum(0) / 0.9, 1e-4, 1e-4));
    }
}

using WithDropout = Tensors (*)(const Tensors& in, double share);
const WithDropout kWithDropout[] = {add_norm_with_dropout, relu_with_dropout};

bool are_equal(const Tensors& a, const Tensors& b) {
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!torch::equal(a[i], b[i])) return false;
  return a.size() == b.size();
}

TEST(KernelsWithDropout, GiveTheSameBitsForTheSameSeedAndOthersForTheNextCall) {
  TUTTI_NEEDS_GPU();
  for (const auto type : kTypes)
    for (const WithDropout& run : kWithDropout) {
      torch::manual_seed(9);
      const Tensors in = inputs_of(3001, 256, type);
      torch::manual_seed(10);
      const Tensors first = run(in, 0.2), second = run(in, 0.2);
      const torch::Tensor drawn = torch::rand({3}, kDevice);
      torch::manual_seed(10);
      EXPECT_TRUE(are_equal(first, run(in, 0.2)));
      EXPECT_TRUE(are_equal(second, run(in, 0.2)));
      EXPECT_TRUE(torch::equal(drawn, torch::rand({3}, kDevice)));
      EXPECT_FALSE(torch::equal(first[0], second[0]));
    }
}

TEST(KernelsWithDropout, DrawAnewAtEachReplayOfARecordingAsEagerRunsDo) {
  TUTTI_NEEDS_GPU();
  for (const WithDropout& run : kWithDropout) {
    torch::manual_seed(11);
    const Tensors in = inputs_of(517, 256, torch::kBFloat16);
    const auto twice = [&] {
      Tensors all = run(in, 0.2);
      for (const torch::Tensor& tensor : run(in, 0.2)) all.push_back(tensor);
      return all;
    };
    torch::manual_seed(12);
    const Tensors eager = twice(), later = twice();
    torch::cuda::synchronize();
    at::cuda::CUDAGraph graph;
    Tensors recorded;
    {
      const c10::cuda::CUDAStreamGuard side(c10::cuda::getStreamFromPool());
      graph.capture_begin();
      recorded = twice();
      graph.capture_end();
      torch::manual_seed(12);
      graph.replay();
      torch::cuda::synchronize();
      EXPECT_TRUE(are_equal(recorded, eager));
      graph.replay();
      torch::cuda::synchronize();
      EXPECT_TRUE(are_equal(recorded, later));
      EXPECT_FALSE(torch::equal(eager[0], later[0]));
    }
  }
}

TEST(LinearKernels, AddUpGradientsOfWeightsAndBiasesInFp32) {
  TUTTI_NEEDS_GPU();
  torch::manual_seed(14);
  for (const int64_t rows : {1, 7, 1021})
    for (const int64_t width : {8, 61, 256}) {
      const Bf16Autocast autocast(true);
      const std::string what = describe(rows, width, torch::kBFloat16);
      const torch::Tensor x = numbers({rows, width}, torch::kBFloat16);
      Tensors weights, biases;
      for (const int64_t outputs : {5, 64, 11}) {
        // Of few bits, so that their product is that of the exact numbers.
        weights.push_back(numbers({outputs, width}, torch::kBFloat16).detach().to(torch::kFloat).requires_grad_());
        biases.push_back(numbers({outputs}, torch::kBFloat16).detach().to(torch::kFloat).requires_grad_());
      }
      const gpu::LinearResult result = gpu::linear(x, weights, biases);
      EXPECT_TRUE(torch::equal(result.x, x));
      const torch::Tensor exact_x = exact(x), exact_weight = exact(torch::cat(weights)),
                          exact_bias = exact(torch::cat(biases));
      const torch::Tensor expected = torch::linear(exact_x, exact_weight, exact_bias);
      expect_near(result.y, expected, 1e-2, what);
      const torch::Tensor of_y = numbers({rows, 80}, torch::kBFloat16).detach();
      const torch::Tensor of_x = numbers({rows, width}, torch::kBFloat16).detach();
      Tensors inputs{x};
      inputs.insert(inputs.end(), weights.begin(), weights.end());
      inputs.insert(inputs.end(), biases.begin(), biases.end());
      const Tensors actual = torch::autograd::grad({result.y, result.x}, inputs, {of_y, of_x});
      const Tensors wanted = torch::autograd::grad({expected, exact_x * 1}, {exact_x, exact_weight, exact_bias},
                                                   {of_y.to(torch::kDouble), of_x.to(torch::kDouble)});
      expect_near(actual[0], wanted[0], 1e-2, what + ", input");
      EXPECT_EQ(actual[1].scalar_type(), torch::kFloat);
      expect_close(torch::cat({actual[1], actual[2], actual[3]}), wanted[1], what + ", weights");
      expect_close(torch::cat({actual[4], actual[5], actual[6]}), wanted[2], what + ", biases");
    }
}

TEST(LinearKernels, GiveNoGradientToWhatIsFrozen) {
  TUTTI_NEEDS_GPU();
  const Bf16Autocast autocast(true);
  const torch::Tensor x = numbers({3, 8}, torch::kFloat).detach();
  const torch::Tensor weight = numbers({4, 8}, torch::kFloat), frozen = numbers({4}, torch::kFloat).detach();
  gpu::linear(x, {weight}, {frozen}).y.sum().backward();
  EXPECT_TRUE(weight.grad().defined());
  EXPECT_FALSE(frozen.grad().defined());
  EXPECT_FALSE(x.grad().defined());
}

TEST(CrossEntropyKernels, EqualTorchWithTargetsThatCountAndThatDoNot) {
  TUTTI_NEEDS_GPU();
  torch::manual_seed(15);
  constexpr int64_t kIgnored = -100, kWidth = 64;
  for (const int64_t rows : {1, 2, 63, 700})
    for (const int64_t classes : {1, 2, 7, 64, 1003, 30522})
      for (const double share_ignored : {0.0, 0.3, 1.0}) {
        const Bf16Autocast autocast(true);
        const std::string what = describe(rows, classes, torch::kBFloat16);
        const torch::Tensor x = numbers({rows, kWidth}, torch::kBFloat16);
        const torch::Tensor weight = numbers({classes, kWidth}, torch::kFloat),
                            bias = numbers({classes}, torch::kFloat);
        const torch::Tensor targets = torch::randint(classes, {rows}, kDevice.dtype(torch::kLong));
        targets.masked_fill_(torch::rand({rows}, kDevice).lt(share_ignored), kIgnored);
        const torch::Tensor loss = gpu::linear_cross_entropy(x, weight, bias, targets, kIgnored);
        const Tensors actual = torch::autograd::grad({loss * 3}, {x, weight, bias});
        // From the scores that the kernel saw, which are rounded to bf16, and come of rounded up numbers of classes.
        const int64_t more = (8 - classes % 8) % 8;
        const auto padded = [&](const torch::Tensor& parameter) {
          std::vector<int64_t> shape = parameter.sizes().vec();
          shape[0] = more;
          return torch::cat({parameter.detach(), torch::zeros(shape, kDevice)}).to(torch::kBFloat16);
        };
        const torch::Tensor rounded = torch::addmm(padded(bias), x.detach(), padded(weight).t()).narrow(1, 0, classes);
        const torch::Tensor scores = exact(rounded);
        const torch::Tensor expected = torch::cross_entropy_loss(scores, targets, {}, at::Reduction::Sum, kIgnored) /
                                       targets.ne(kIgnored).sum().clamp_min(1);
        EXPECT_NEAR(loss.item<double>(), expected.item<double>(), 5e-3 * (1 + expected.item<double>())) << what;
        const torch::Tensor of_scores = torch::autograd::grad({expected * 3}, {scores})[0];
        const Tensors wanted{torch::mm(of_scores, exact(weight.to(torch::kBFloat16)).detach()),
                             torch::mm(of_scores.t(), exact(x).detach()), of_scores.sum(0)};
        for (std::size_t i = 0; i < wanted.size(); ++i)
          expect_near(actual[i], wanted[i], 1e-2, what + ", gradient " + std::to_string(i));
      }
}

TEST(CrossEntropyKernels, ShowATargetThatIsNoClass) {
  TUTTI_NEEDS_GPU();
  const Bf16Autocast autocast(true);
  const torch::Tensor x = numbers({2, 8}, torch::kFloat), weight = numbers({4, 8}, torch::kFloat);
  const torch::Tensor targets = torch::tensor({1, 4}, torch::kLong).cuda();
  const torch::Tensor loss = gpu::linear_cross_entropy(x, weight, torch::zeros({4}, kDevice), targets, -100);
  EXPECT_TRUE(std::isnan(loss.item<double>()));
}

TEST(TransformerOps, ComputeInBf16UnderAutocastAsTorchDoesWithinItsPrecision) {
  TUTTI_NEEDS_GPU();
  torch::manual_seed(13);
  Dense inner(64, 256), outer(256, 64);
  LayerNorm norm(64, kEpsilon);
  torch::NoGradGuard no_grad;
  for (torch::nn::Module* const module :
       {static_cast<torch::nn::Module*>(&inner), static_cast<torch::nn::Module*>(&outer),
        static_cast<torch::nn::Module*>(&norm)}) {
    module->to(torch::kCUDA);
    for (torch::Tensor& parameter : module->parameters()) parameter.normal_(0, 0.1);
  }
  const torch::Tensor x = torch::randn({3, 17, 64}, kDevice);
  const auto run = [&] { return normalize(add_norm(dense_gelu(x, inner), outer, x, 0, norm), norm); };
  torch::Tensor expected;
  {
    const PlainOperations plain;
    EXPECT_FALSE(gpu::takes(x, norm.weight));
    expected = run();
  }
  EXPECT_TRUE(torch::allclose(run(), expected, 1e-3, 1e-3));
  const Bf16Autocast autocast(true);
  const torch::Tensor out = run();
  EXPECT_EQ(out.scalar_type(), torch::kBFloat16);
  EXPECT_TRUE(torch::allclose(out.to(torch::kFloat), expected, 2e-2, 2e-2));
}

TEST(TransformerOps, LeaveWhatKernelsDoNotTakeToTorch) {
  TUTTI_NEEDS_GPU();
  const torch::Tensor parameter = torch::ones({8}, kDevice), x = torch::ones({2, 8}, kDevice);
  EXPECT_TRUE(gpu::takes(x, parameter));
  EXPECT_FALSE(gpu::takes(x.cpu(), parameter));
  EXPECT_FALSE(gpu::takes(x.to(torch::kDouble), parameter));
  EXPECT_FALSE(gpu::takes(x, parameter.to(torch::kDouble)));
  EXPECT_TRUE(gpu::takes(torch::ones({2, 4104}, kDevice), parameter));
  EXPECT_FALSE(gpu::takes_rows(torch::ones({2, 4104}, kDevice), parameter));
  EXPECT_FALSE(gpu::takes_rows(torch::ones({2, 1025}, kDevice), parameter));
}

TEST(TransformerOps, RefuseSecondDerivatives) {
  TUTTI_NEEDS_GPU();
  const Tensors in = inputs_of(3, 8, torch::kFloat);
  const torch::Tensor out = gpu::bias_gelu(in[0], in[1]);
  EXPECT_THROW(torch::autograd::grad({out.sum()}, {in[0]}, {}, true, /*create_graph=*/true), std::exception);
}

}  // namespace
}  // namespace tutti
