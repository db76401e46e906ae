// PyTorch's own fused kernels on slices of the flat buffers; nothing here waits for the device.
#include <ATen/ATen.h>

#include "engine/optimizer.h"

namespace tutti {
namespace {

/// Torch's fused kernels divide by their `grad_scale`.
c10::optional<torch::Tensor> divisor_of(const torch::Tensor& gradient_scale) {
  if (!gradient_scale.defined()) return {};
  return gradient_scale.reciprocal();
}

class CudaSgd : public FlatOptimizer {
 public:
  CudaSgd(const OptimizerOptions& options, const torch::Tensor& like) : options_(options) {
    if (options.momentum != 0) momentum_ = torch::zeros_like(like);
  }

  std::vector<std::string> state_names() const override {
    return momentum_.defined() ? std::vector<std::string>{"momentum"} : std::vector<std::string>{};
  }
  std::vector<torch::Tensor> state() const override {
    return momentum_.defined() ? std::vector<torch::Tensor>{momentum_} : std::vector<torch::Tensor>{};
  }

  void update(const UpdateSlice& slice, double learning_rate, const torch::Tensor& gradient_scale) override {
    const int64_t length = slice.end - slice.begin;
    std::vector<torch::Tensor> values = {slice.values.narrow(0, slice.begin, length)};
    std::vector<torch::Tensor> gradients = {slice.gradients.narrow(0, slice.begin, length)};
    std::vector<torch::Tensor> momentum;
    if (momentum_.defined()) momentum.push_back(momentum_.narrow(0, slice.begin, length));
    at::_fused_sgd_(values, gradients, momentum, options_.weight_decay, options_.momentum, learning_rate,
                    /*dampening=*/0, options_.nesterov, /*maximize=*/false, /*is_first_step=*/false,
                    divisor_of(gradient_scale), {});
  }

 private:
  OptimizerOptions options_;
  torch::Tensor momentum_;
};

class CudaAdam : public FlatOptimizer {
 public:
  CudaAdam(const OptimizerOptions& options, const torch::Tensor& like)
      : options_(options), mean_(torch::zeros_like(like)), square_(torch::zeros_like(like)) {}

  std::vector<std::string> state_names() const override { return {"exp_avg", "exp_avg_sq"}; }
  std::vector<torch::Tensor> state() const override { return {mean_, square_}; }

  void update(const UpdateSlice& slice, double learning_rate, const torch::Tensor& gradient_scale) override {
    const int64_t length = slice.end - slice.begin;
    std::vector<torch::Tensor> values = {slice.values.narrow(0, slice.begin, length)};
    std::vector<torch::Tensor> gradients = {slice.gradients.narrow(0, slice.begin, length)};
    std::vector<torch::Tensor> mean = {mean_.narrow(0, slice.begin, length)};
    std::vector<torch::Tensor> square = {square_.narrow(0, slice.begin, length)};
    const std::vector<torch::Tensor> none;
    const std::vector<torch::Tensor> steps = {
        torch::full({}, static_cast<double>(slice.step), mean_.options())};  // a fill kernel, not a copy from the host
    const auto fused = options_.name == "adamw" ? fused_adamw : fused_adam;
    fused(values, gradients, mean, square, none, steps, learning_rate, options_, divisor_of(gradient_scale));
  }

 private:
  static void fused_adam(at::TensorList values, at::TensorList gradients, at::TensorList mean, at::TensorList square,
                         at::TensorList none, at::TensorList steps, double rate, const OptimizerOptions& options,
                         const c10::optional<torch::Tensor>& divisor) {
    at::_fused_adam_(values, gradients, mean, square, none, steps, rate, options.beta1, options.beta2,
                     options.weight_decay, options.epsilon, /*amsgrad=*/false, /*maximize=*/false, divisor, {});
  }
  static void fused_adamw(at::TensorList values, at::TensorList gradients, at::TensorList mean, at::TensorList square,
                          at::TensorList none, at::TensorList steps, double rate, const OptimizerOptions& options,
                          const c10::optional<torch::Tensor>& divisor) {
    at::_fused_adamw_(values, gradients, mean, square, none, steps, rate, options.beta1, options.beta2,
                      options.weight_decay, options.epsilon, /*amsgrad=*/false, /*maximize=*/false, divisor, {});
  }

  OptimizerOptions options_;
  torch::Tensor mean_, square_;
};

}  // namespace

std::unique_ptr<FlatOptimizer> make_cuda_optimizer(const OptimizerOptions& options, const torch::Tensor& like) {
  if (options.name == "sgd") return std::make_unique<CudaSgd>(options, like);
  return std::make_unique<CudaAdam>(options, like);
}

}  // namespace tutti
