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
  CudaSgd(const OptimizerOptions& options, const torch::Tensor& like) : FlatOptimizer(options, like) {}

  void update(const UpdateSlice& slice, double learning_rate, const torch::Tensor& gradient_scale) override {
    const int64_t length = slice.end - slice.begin;
    std::vector<torch::Tensor> values = {slice.values.narrow(0, slice.begin, length)};
    std::vector<torch::Tensor> gradients = {slice.gradients.narrow(0, slice.begin, length)};
    std::vector<torch::Tensor> momentum;
    for (const torch::Tensor& buffer : state()) momentum.push_back(buffer.narrow(0, slice.begin, length));
    at::_fused_sgd_(values, gradients, momentum, options_.weight_decay, options_.momentum, learning_rate,
                    /*dampening=*/0, options_.nesterov, /*maximize=*/false, /*is_first_step=*/false,
                    divisor_of(gradient_scale), {});
  }
};

class CudaAdam : public FlatOptimizer {
 public:
  CudaAdam(const OptimizerOptions& options, const torch::Tensor& like) : FlatOptimizer(options, like) {}

  void update(const UpdateSlice& slice, double learning_rate, const torch::Tensor& gradient_scale) override {
    const int64_t length = slice.end - slice.begin;
    std::vector<torch::Tensor> values = {slice.values.narrow(0, slice.begin, length)};
    std::vector<torch::Tensor> gradients = {slice.gradients.narrow(0, slice.begin, length)};
    std::vector<torch::Tensor> mean = {state()[0].narrow(0, slice.begin, length)};
    std::vector<torch::Tensor> square = {state()[1].narrow(0, slice.begin, length)};
    const std::vector<torch::Tensor> none;
    const std::vector<torch::Tensor> steps = {torch::full(
        {}, static_cast<double>(slice.step), state()[0].options())};  // a fill kernel, not a copy from the host
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
};

}  // namespace

std::unique_ptr<FlatOptimizer> make_cuda_optimizer(const OptimizerOptions& options, const torch::Tensor& like) {
  if (options.name == "sgd") return std::make_unique<CudaSgd>(options, like);
  return std::make_unique<CudaAdam>(options, like);
}

}  // namespace tutti
