#pragma once

#include <torch/csrc/autograd/custom_function.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include <string>
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
  return {torch::sin(i * torch::arange(1, inputs + 1, torch::kFloat32) * 0.7),
          torch::cos(i * torch::arange(1, 4, torch::kFloat32))};
}

/// Networks that are awkward to synchronize, each in its own way. All take 6 inputs and give 3 outputs.
struct AwkwardNetwork : torch::nn::Module {
  virtual torch::Tensor forward(torch::Tensor x) = 0;
  torch::Tensor loss(const Samples& samples) { return (forward(samples.x) - samples.y).pow(2).mean(); }
};

struct BatchNormNetwork : AwkwardNetwork {
  torch::nn::Linear first = register_module("first", torch::nn::Linear(6, 8));
  torch::nn::BatchNorm1d norm = register_module("norm", torch::nn::BatchNorm1d(8));
  torch::nn::Linear second = register_module("second", torch::nn::Linear(8, 3));
  torch::Tensor forward(torch::Tensor x) override { return second(torch::relu(norm(first(x)))); }
};

struct TiedNetwork : AwkwardNetwork {
  torch::Tensor weight = register_parameter("weight", torch::randn({6, 6}) * 0.3);
  torch::nn::Linear last = register_module("last", torch::nn::Linear(6, 3));
  torch::Tensor forward(torch::Tensor x) override {
    return last(torch::tanh(torch::tanh(x.mm(weight)).mm(weight.t())));
  }
};

struct UnusedNetwork : AwkwardNetwork {
  torch::nn::Linear first = register_module("first", torch::nn::Linear(6, 3));
  torch::nn::Linear unused = register_module("unused", torch::nn::Linear(40, 5));
  torch::Tensor forward(torch::Tensor x) override { return first(x); }
};

struct ManyTinyNetwork : AwkwardNetwork {
  ManyTinyNetwork() {
    for (int i = 0; i < 300; ++i)
      scales.push_back(register_parameter("scale" + std::to_string(i), torch::ones({i % 7 + 1}) * 0.99));
    last = register_module("last", torch::nn::Linear(6, 3));
  }
  torch::Tensor forward(torch::Tensor x) override {
    for (const torch::Tensor& scale : scales) x = x * scale.mean();
    return last(x);
  }
  std::vector<torch::Tensor> scales;
  torch::nn::Linear last{nullptr};
};

struct HugeTensorNetwork : AwkwardNetwork {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  static constexpr int64_t kElements = 500'000;  // sanitizers look at accesses, and make each many times slower
#else
  static constexpr int64_t kElements = 5'000'000;  // 20 MB; memory is slow when it is touched for the first time
#endif
  torch::Tensor huge = register_parameter("huge", torch::ones({kElements}));
  torch::nn::Linear last = register_module("last", torch::nn::Linear(6, 3));
  torch::Tensor forward(torch::Tensor x) override { return last(x) * huge.mean(); }
};

/// x times the last element of a parameter, which is read through a pointer: no operator of torch's gets to see it.
struct TimesLastElement : torch::autograd::Function<TimesLastElement> {
  static torch::Tensor forward(torch::autograd::AutogradContext* context, const torch::Tensor& x,
                               const torch::Tensor& hidden) {
    const float last = hidden.data_ptr<float>()[hidden.numel() - 1];
    context->save_for_backward({x});
    context->saved_data["last"] = static_cast<double>(last);
    context->saved_data["elements"] = hidden.numel();
    return x * last;
  }
  static torch::autograd::tensor_list backward(torch::autograd::AutogradContext* context,
                                               const torch::autograd::tensor_list& gradients) {
    torch::Tensor of_hidden = torch::zeros({context->saved_data["elements"].toInt()});
    of_hidden[-1] = (gradients[0] * context->get_saved_variables()[0]).sum();
    return {gradients[0] * context->saved_data["last"].toDouble(), of_hidden};
  }
};

struct HiddenReadNetwork : AwkwardNetwork {
  torch::Tensor offset = register_parameter("offset", torch::zeros({6}));
  torch::Tensor hidden = register_parameter("hidden", torch::ones({200'000}));  // whose transfer takes a while
  torch::nn::Linear last = register_module("last", torch::nn::Linear(6, 3));
  torch::Tensor forward(torch::Tensor x) override { return last(TimesLastElement::apply(x, hidden) + offset); }
};

inline std::vector<torch::Tensor> copies(const torch::nn::Module& model) {
  std::vector<torch::Tensor> values;
  for (const auto& parameter : model.parameters()) values.push_back(parameter.detach().clone());
  return values;
}

}  // namespace tutti
