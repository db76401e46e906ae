// PyTorch's own fused kernels on slices of the flat buffers; nothing here waits for the device.
#include <ATen/ATen.h>

#include "engine/optimizers/cpu.h"
#include "engine/optimizers/cuda.h"

namespace tutti {
namespace {

/// Torch's fused kernels divide by their `grad_scale`.
c10::optional<torch::Tensor> divisor_of(const torch::Tensor& gradient_scale) {
  if (!gradient_scale.defined()) return {};
  return gradient_scale.reciprocal();
}

class CudaSgd : public FlatOptimizer {
 public:
  CudaSgd(const OptimizerOptions& options, const torch::Tensor& like)
      : FlatOptimizer(options, sgd_state(options), like) {}

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

using Tensors = at::TensorList;
using Divisor = c10::optional<torch::Tensor>;
/// One of torch's two, which take the same.
using FusedAdam = void (*)(Tensors values, Tensors gradients, Tensors mean, Tensors square, Tensors none, Tensors steps,
                           double rate, const OptimizerOptions& options, const Divisor& divisor);

class CudaAdam : public FlatOptimizer {
 public:
  CudaAdam(const OptimizerOptions& options, FusedAdam fused, const torch::Tensor& like)
      : FlatOptimizer(options, adam_state(), like), fused_(fused) {}

  void update(const UpdateSlice& slice, double learning_rate, const torch::Tensor& gradient_scale) override {
    const int64_t length = slice.end - slice.begin;
    std::vector<torch::Tensor> values = {slice.values.narrow(0, slice.begin, length)};
    std::vector<torch::Tensor> gradients = {slice.gradients.narrow(0, slice.begin, length)};
    std::vector<torch::Tensor> mean = {state()[0].narrow(0, slice.begin, length)};
    std::vector<torch::Tensor> square = {state()[1].narrow(0, slice.begin, length)};
    const std::vector<torch::Tensor> none;
    const std::vector<torch::Tensor> steps = {torch::full(
        {}, static_cast<double>(slice.step), state()[0].options())};  // a fill kernel, not a copy from the host
    fused_(values, gradients, mean, square, none, steps, learning_rate, options_, divisor_of(gradient_scale));
  }

 private:
  const FusedAdam fused_;
};

void fused_adam(Tensors values, Tensors gradients, Tensors mean, Tensors square, Tensors none, Tensors steps,
                double rate, const OptimizerOptions& options, const Divisor& divisor) {
  at::_fused_adam_(values, gradients, mean, square, none, steps, rate, options.beta1, options.beta2,
                   options.weight_decay, options.epsilon, /*amsgrad=*/false, /*maximize=*/false, divisor, {});
}

void fused_adamw(Tensors values, Tensors gradients, Tensors mean, Tensors square, Tensors none, Tensors steps,
                 double rate, const OptimizerOptions& options, const Divisor& divisor) {
  at::_fused_adamw_(values, gradients, mean, square, none, steps, rate, options.beta1, options.beta2,
                    options.weight_decay, options.epsilon, /*amsgrad=*/false, /*maximize=*/false, divisor, {});
}

}  // namespace

std::unique_ptr<FlatOptimizer> make_cuda_sgd(const OptimizerOptions& options, const torch::Tensor& like) {
  return std::make_unique<CudaSgd>(options, like);
}

std::unique_ptr<FlatOptimizer> make_cuda_adam(const OptimizerOptions& options, const torch::Tensor& like) {
  return std::make_unique<CudaAdam>(options, fused_adam, like);
}

std::unique_ptr<FlatOptimizer> make_cuda_adamw(const OptimizerOptions& options, const torch::Tensor& like) {
  return std::make_unique<CudaAdam>(options, fused_adamw, like);
}

}  // namespace tutti
