#include "model/layers.h"

#include "model/ops/linear.h"

namespace tutti {

Dense::Dense(int64_t inputs, int64_t outputs)
    : weight(register_parameter("weight", torch::empty({outputs, inputs}))),
      bias(register_parameter("bias", torch::empty({outputs}))) {}

torch::Tensor Dense::operator()(const torch::Tensor& x) const { return linear(x, weight, bias); }

Embedding::Embedding(int64_t rows, int64_t width) : weight(register_parameter("weight", torch::empty({rows, width}))) {}

torch::Tensor Embedding::operator()(const torch::Tensor& numbers) const { return torch::embedding(weight, numbers); }

LayerNorm::LayerNorm(int64_t width, double epsilon)
    : weight(register_parameter("weight", torch::ones({width}))),
      bias(register_parameter("bias", torch::zeros({width}))),
      epsilon(epsilon) {}

torch::Tensor LayerNorm::operator()(const torch::Tensor& x) const {
  return torch::layer_norm(x, weight.sizes(), weight, bias, epsilon);
}

std::shared_ptr<torch::nn::Module> add_folder(torch::nn::Module& parent, const std::string& name) {
  return parent.register_module(name, std::make_shared<torch::nn::Module>());
}

BatchCounter::BatchCounter(const torch::nn::Module& model) {
  for (const auto& module : model.modules(/*include_self=*/false))
    if (auto layer = std::dynamic_pointer_cast<torch::nn::BatchNorm2dImpl>(module)) layers_.push_back(std::move(layer));
}

void BatchCounter::count() {
  const torch::NoGradGuard no_grad;
  std::vector<torch::Tensor> counts;
  counts.reserve(layers_.size());
  for (const auto& layer : layers_)
    if (layer->is_training()) counts.push_back(layer->num_batches_tracked);
  if (!counts.empty()) at::_foreach_add_(counts, 1);
}

}  // namespace tutti
