#include "engine/optimizer.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/cuda.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <cmath>

#include "tutti/error.h"

namespace tutti {
namespace {

constexpr int64_t kLength = 1000;

/// The largest difference between 100 of our steps and 100 of torch's on the same gradients, over the values' size.
double difference_after_100_steps(const OptimizerOptions& options, torch::optim::Optimizer& reference,
                                  torch::Tensor theirs, double learning_rate) {
  torch::Tensor ours = theirs.detach().clone();
  const auto optimizer = make_optimizer(options, ours);
  for (int64_t step = 1; step <= 100; ++step) {
    const torch::Tensor gradient = torch::randn({kLength});
    theirs.mutable_grad() = gradient;
    reference.step();
    // In three slices: a result may not depend on them.
    for (const auto& [begin, end] : {std::pair<int64_t, int64_t>{0, 7}, {7, 640}, {640, kLength}})
      optimizer->update({ours, gradient, begin, end, step}, learning_rate, {});
  }
  return ((ours - theirs).abs().max() / theirs.abs().max()).item<double>();
}

torch::Tensor start_values() {
  torch::manual_seed(3);
  return torch::randn({kLength}).requires_grad_();
}

TEST(Sgd, EqualsTorchOver100Steps) {
  for (const double momentum : {0.0, 0.9})
    for (const double decay : {0.0, 0.05})
      for (const bool nesterov : {false, true}) {
        if (nesterov && momentum == 0) continue;
        torch::Tensor values = start_values();
        torch::optim::SGD reference(
            {values}, torch::optim::SGDOptions(0.05).momentum(momentum).weight_decay(decay).nesterov(nesterov));
        OptimizerOptions options;
        options.momentum = momentum;
        options.weight_decay = decay;
        options.nesterov = nesterov;
        EXPECT_LT(difference_after_100_steps(options, reference, values, 0.05), 2e-6) << momentum << decay << nesterov;
      }
}

TEST(Adam, EqualsTorchOver100Steps) {
  for (const double decay : {0.0, 0.05}) {
    torch::Tensor values = start_values();
    torch::optim::Adam reference({values}, torch::optim::AdamOptions(0.01).weight_decay(decay));
    OptimizerOptions options;
    options.name = "adam";
    options.weight_decay = decay;
    EXPECT_LT(difference_after_100_steps(options, reference, values, 0.01), 2e-6) << decay;
  }
}

TEST(AdamW, EqualsTorchOver100Steps) {
  torch::Tensor values = start_values();
  torch::optim::AdamW reference({values}, torch::optim::AdamWOptions(0.01).weight_decay(0.1));
  OptimizerOptions options;
  options.name = "adamw";
  options.weight_decay = 0.1;
  EXPECT_LT(difference_after_100_steps(options, reference, values, 0.01), 2e-6);
}

/// Steps of LAMB on one tensor, as its paper writes them: You et al. 2020, algorithm 2, with phi(z) = z.
std::vector<double> lamb_by_the_book(std::vector<double> w, const std::vector<std::vector<double>>& gradients,
                                     double rate, double beta1, double beta2, double epsilon, double decay) {
  std::vector<double> m(w.size(), 0), v(w.size(), 0), u(w.size());
  for (std::size_t t = 1; t <= gradients.size(); ++t) {
    double norm_w = 0, norm_u = 0;
    for (std::size_t i = 0; i < w.size(); ++i) {
      const double g = gradients[t - 1][i];
      m[i] = beta1 * m[i] + (1 - beta1) * g;
      v[i] = beta2 * v[i] + (1 - beta2) * g * g;
      const double m_hat = m[i] / (1 - std::pow(beta1, static_cast<double>(t)));
      const double v_hat = v[i] / (1 - std::pow(beta2, static_cast<double>(t)));
      u[i] = m_hat / (std::sqrt(v_hat) + epsilon) + decay * w[i];
      norm_w += w[i] * w[i];
      norm_u += u[i] * u[i];
    }
    const double ratio = norm_w > 0 && norm_u > 0 ? std::sqrt(norm_w) / std::sqrt(norm_u) : 1;
    for (std::size_t i = 0; i < w.size(); ++i) w[i] -= rate * ratio * u[i];
  }
  return w;
}

OptimizerOptions lamb_options(double decay) {
  OptimizerOptions options;
  options.name = "lamb";
  options.epsilon = 1e-6;
  options.weight_decay = decay;
  return options;
}

TEST(Lamb, IsItsPublishedFormula) {
  torch::manual_seed(4);
  const int64_t length = 70'000;  // three blocks of norms
  const torch::Tensor start = torch::randn({length}) * 0.3;
  std::vector<torch::Tensor> gradients;
  std::vector<std::vector<double>> as_numbers;
  const auto numbers = [](const torch::Tensor& tensor) {
    const float* const data = tensor.data_ptr<float>();
    return std::vector<double>(data, data + tensor.numel());
  };
  for (int step = 0; step < 10; ++step) {
    gradients.push_back(torch::randn({length}) * 0.01);
    as_numbers.push_back(numbers(gradients.back()));
  }
  for (const double decay : {0.0, 0.1}) {
    const OptimizerOptions options = lamb_options(decay);
    const auto expected =
        lamb_by_the_book(numbers(start), as_numbers, 0.02, options.beta1, options.beta2, options.epsilon, decay);
    const auto expect_equal = [&](torch::Device device) {
      torch::Tensor values = start.to(device, /*non_blocking=*/false, /*copy=*/true);
      const auto optimizer = make_optimizer(options, values);
      EXPECT_TRUE(optimizer->needs_whole_tensors());
      for (int64_t step = 1; step <= 10; ++step)
        optimizer->update({values, gradients[static_cast<std::size_t>(step - 1)].to(device), 0, length, step}, 0.02,
                          {});
      const std::vector<double> reached = numbers(values.cpu());
      double worst = 0;
      for (std::size_t i = 0; i < reached.size(); ++i) worst = std::max(worst, std::abs(reached[i] - expected[i]));
      EXPECT_LT(worst, 3e-6) << decay << " on " << device;
    };
    expect_equal(torch::kCPU);
    if (torch::cuda::is_available()) expect_equal(torch::kCUDA);
  }
}

TEST(Lamb, TakesARatioOfOneWhereEitherNormIsZero) {
  torch::Tensor zero = torch::zeros({4}), weights = torch::ones({4});
  make_optimizer(lamb_options(0), zero)->update({zero, torch::full({4}, 2.0), 0, 4, 1}, 0.1, {});
  EXPECT_TRUE(torch::allclose(zero, torch::full({4}, -0.1), 1e-4)) << zero;  // Adam's step: 1 in every direction
  make_optimizer(lamb_options(0), weights)->update({weights, torch::zeros({4}), 0, 4, 1}, 0.1, {});
  EXPECT_TRUE(torch::equal(weights, torch::ones({4})));
}

TEST(Lamb, GivesTheSameBitsWithAnyNumberOfThreadsAndWhereverATensorLies) {
  torch::manual_seed(5);
  const int64_t length = 200'003, padded = 200'016;
  const torch::Tensor start = torch::randn({length}), gradient = torch::randn({length});
  const auto after = [&](int threads, int64_t begin, int64_t end) {
    const int before = at::get_num_threads();
    at::set_num_threads(threads);
    torch::Tensor values = torch::zeros({padded + 64}), gradients = torch::zeros({padded + 64});
    values.narrow(0, begin, length).copy_(start);
    gradients.narrow(0, begin, length).copy_(gradient);
    const auto optimizer = make_optimizer(lamb_options(0.01), values);
    for (int64_t step = 1; step <= 3; ++step) optimizer->update({values, gradients, begin, end, step}, 0.1, {});
    at::set_num_threads(before);
    return values.narrow(0, begin, length).clone();
  };
  const torch::Tensor expected = after(1, 0, padded);
  EXPECT_TRUE(torch::equal(after(3, 0, padded), expected));
  EXPECT_TRUE(torch::equal(after(2, 48, 48 + padded), expected));
  EXPECT_TRUE(torch::equal(after(2, 16, 16 + length), expected));
}

TEST(Optimizers, AreAllMadeAndReadTheOptionsThatTheySay) {
  const torch::Tensor start = torch::linspace(-1, 1, 64), gradient = torch::linspace(0.2, 1, 64);
  const auto after = [&](const OptimizerOptions& options) {
    torch::Tensor values = start.clone();
    const auto optimizer = make_optimizer(options, values);
    for (int64_t step = 1; step <= 3; ++step) optimizer->update({values, gradient, 0, 64, step}, 0.1, {});
    return values;
  };
  for (const Optimizer& optimizer : optimizers()) {
    OptimizerOptions usual;
    usual.name = optimizer.name;
    usual.momentum = 0.5;
    for (const OptimizerOption& option : optimizer_options()) {
      OptimizerOptions changed = usual;
      std::visit(
          [&](auto member) {
            using Value = std::decay_t<decltype(changed.*member)>;
            changed.*member = std::is_same_v<Value, bool> ? Value(true) : static_cast<Value>(usual.*member / 2 + 0.05);
          },
          option.field);
      const bool reads =
          std::find(optimizer.options.begin(), optimizer.options.end(), option.name) != optimizer.options.end();
      EXPECT_EQ(!torch::equal(after(changed), after(usual)), reads) << optimizer.name << " --" << option.name;
    }
  }
}

TEST(Optimizer, MultipliesGradientsByTheScaleFirst) {
  OptimizerOptions options;
  torch::Tensor scaled = torch::zeros({4}), plain = torch::zeros({4});
  const torch::Tensor gradient = torch::arange(4, torch::kFloat32);
  make_optimizer(options, scaled)->update({scaled, gradient, 0, 4, 1}, 0.1, torch::full({}, 0.25));
  make_optimizer(options, plain)->update({plain, gradient * 0.25, 0, 4, 1}, 0.1, {});
  EXPECT_TRUE(torch::equal(scaled, plain));
}

TEST(Optimizer, RefusesWhatMakesNoSense) {
  const torch::Tensor like = torch::zeros({4});
  OptimizerOptions unknown;
  unknown.name = "adm";
  EXPECT_THROW(make_optimizer(unknown, like), UsageError);
  OptimizerOptions momentum;
  momentum.momentum = 1.5;
  EXPECT_THROW(make_optimizer(momentum, like), UsageError);
  OptimizerOptions nesterov;
  nesterov.nesterov = true;
  EXPECT_THROW(make_optimizer(nesterov, like), UsageError);
}

}  // namespace
}  // namespace tutti
