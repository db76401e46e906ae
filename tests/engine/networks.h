#pragma once

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include <vector>

namespace tutti {

/// A small network with a frozen parameter, a parameter that nothing uses and one that only some batches use.
struct OddNetwork : torch::nn::Module {
  explicit OddNetwork(int64_t inputs = 6) {
    first = register_module("first", torch::nn::Linear(inputs, 8));
    second = register_module("second", torch::nn::Linear(8, 3));
    sometimes = register_parameter("sometimes", torch::ones({3}));
    unused = register_parameter("unused", torch::ones({5}));
    frozen = register_parameter("frozen", torch::full({3}, 0.5), /*requires_grad=*/false);
  }
  torch::Tensor loss(const torch::Tensor& x, const torch::Tensor& y, bool use_sometimes = false) {
    torch::Tensor out = second(torch::tanh(first(x))) + frozen;
    if (use_sometimes) out = out * sometimes;
    return (out - y).pow(2).mean(1).mean();
  }

  torch::nn::Linear first{nullptr}, second{nullptr};
  torch::Tensor sometimes, unused, frozen;
};

/// Samples of a made-up regression: row i depends on i alone.
struct Samples {
  torch::Tensor x, y;
};
inline Samples make_samples(int64_t first, int64_t count, int64_t inputs = 6) {
  const torch::Tensor i = torch::arange(first, first + count, torch::kFloat32).unsqueeze(1);
  return {torch::sin(i * torch::arange(1, inputs + 1, torch::kFloat32) * 0.7), torch::cos(i * torch::arange(1, 4, torch::kFloat32))};
}

inline std::vector<torch::Tensor> copies(const torch::nn::Module& model) {
  std::vector<torch::Tensor> values;
  for (const auto& parameter : model.parameters()) values.push_back(parameter.detach().clone());
  return values;
}

}  // namespace tutti
