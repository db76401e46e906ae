#include <ATen/Parallel.h>

#include <cmath>

#include "engine/optimizers/cpu.h"
#include "engine/optimizers/cuda.h"

namespace tutti {
namespace {

class CpuAdam : public FlatOptimizer {
 public:
  /// `decoupled`: weight decay apart from the gradients, as adamw has it.
  CpuAdam(const OptimizerOptions& options, bool decoupled, const torch::Tensor& like)
      : FlatOptimizer(options, adam_state(), like), decoupled_(decoupled) {}

  void update(const UpdateSlice& slice, double learning_rate, const torch::Tensor& gradient_scale) override {
    const OptimizerOptions& options = options_of(slice);
    learning_rate *= options.rate_factor;
    float* const values = slice.values.data_ptr<float>();
    const float* const gradients = slice.gradients.data_ptr<float>();
    float* const mean = state()[0].data_ptr<float>();
    float* const square = state()[1].data_ptr<float>();
    const double steps = static_cast<double>(slice.step);
    const double correction1 = 1 - std::pow(options.beta1, steps), correction2 = 1 - std::pow(options.beta2, steps);
    const float shrink = static_cast<float>(decoupled_ ? 1 - learning_rate * options.weight_decay : 1);
    const float decay = static_cast<float>(decoupled_ ? 0 : options.weight_decay);
    const float beta1 = static_cast<float>(options.beta1), one_less_beta1 = static_cast<float>(1 - options.beta1);
    const float beta2 = static_cast<float>(options.beta2), one_less_beta2 = static_cast<float>(1 - options.beta2);
    const float step_size = static_cast<float>(learning_rate / correction1);
    const float inverse_root = static_cast<float>(1 / std::sqrt(correction2));
    const float epsilon = static_cast<float>(options.epsilon), scale = scale_of(gradient_scale);
    at::parallel_for(slice.begin, slice.end, kGrain, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const float value = shrink * values[i];
        const float gradient = scale * gradients[i] + decay * value;
        mean[i] = beta1 * mean[i] + one_less_beta1 * gradient;
        square[i] = beta2 * square[i] + one_less_beta2 * gradient * gradient;
        values[i] = value - step_size * mean[i] / (std::sqrt(square[i]) * inverse_root + epsilon);
      }
    });
  }

 private:
  const bool decoupled_;
};

}  // namespace

std::vector<std::string> adam_state() { return {"exp_avg", "exp_avg_sq"}; }

std::unique_ptr<FlatOptimizer> make_adam(const OptimizerOptions& options, const torch::Tensor& like) {
  if (like.is_cuda()) return make_cuda_adam(options, like);
  return std::make_unique<CpuAdam>(options, false, like);
}

std::unique_ptr<FlatOptimizer> make_adamw(const OptimizerOptions& options, const torch::Tensor& like) {
  if (like.is_cuda()) return make_cuda_adamw(options, like);
  return std::make_unique<CpuAdam>(options, true, like);
}

}  // namespace tutti
