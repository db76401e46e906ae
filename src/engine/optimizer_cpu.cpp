#include <ATen/Parallel.h>

#include <cmath>

#include "engine/optimizer.h"

namespace tutti {
namespace {

// Long enough to pay for a thread's wake-up.
constexpr int64_t kGrain = 1 << 16;

float scale_of(const torch::Tensor& gradient_scale) {
  return gradient_scale.defined() ? *gradient_scale.data_ptr<float>() : 1.0f;
}

class CpuSgd : public FlatOptimizer {
 public:
  CpuSgd(const OptimizerOptions& options, const torch::Tensor& like) : FlatOptimizer(options, like) {}

  void update(const UpdateSlice& slice, double learning_rate, const torch::Tensor& gradient_scale) override {
    float* const values = slice.values.data_ptr<float>();
    const float* const gradients = slice.gradients.data_ptr<float>();
    const float rate = static_cast<float>(learning_rate), scale = scale_of(gradient_scale);
    const float decay = static_cast<float>(options_.weight_decay);
    if (state().empty()) {
      at::parallel_for(slice.begin, slice.end, kGrain, [=](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) values[i] -= rate * (scale * gradients[i] + decay * values[i]);
      });
      return;
    }
    // A zeroed buffer makes the first step's momentum equal to its gradient, as torch has it.
    float* const momentum = state()[0].data_ptr<float>();
    const float keep = static_cast<float>(options_.momentum);
    const bool nesterov = options_.nesterov;
    at::parallel_for(slice.begin, slice.end, kGrain, [=](int64_t begin, int64_t end) {
      if (nesterov) {
        for (int64_t i = begin; i < end; ++i) {
          const float gradient = scale * gradients[i] + decay * values[i];
          momentum[i] = keep * momentum[i] + gradient;
          values[i] -= rate * (gradient + keep * momentum[i]);
        }
      } else {
        for (int64_t i = begin; i < end; ++i) {
          momentum[i] = keep * momentum[i] + (scale * gradients[i] + decay * values[i]);
          values[i] -= rate * momentum[i];
        }
      }
    });
  }
};

class CpuAdam : public FlatOptimizer {
 public:
  CpuAdam(const OptimizerOptions& options, const torch::Tensor& like) : FlatOptimizer(options, like) {}

  void update(const UpdateSlice& slice, double learning_rate, const torch::Tensor& gradient_scale) override {
    float* const values = slice.values.data_ptr<float>();
    const float* const gradients = slice.gradients.data_ptr<float>();
    float* const mean = state()[0].data_ptr<float>();
    float* const square = state()[1].data_ptr<float>();
    const double steps = static_cast<double>(slice.step);
    const double correction1 = 1 - std::pow(options_.beta1, steps), correction2 = 1 - std::pow(options_.beta2, steps);
    const bool decoupled = options_.name == "adamw";
    const float shrink = static_cast<float>(decoupled ? 1 - learning_rate * options_.weight_decay : 1);
    const float decay = static_cast<float>(decoupled ? 0 : options_.weight_decay);
    const float beta1 = static_cast<float>(options_.beta1), one_less_beta1 = static_cast<float>(1 - options_.beta1);
    const float beta2 = static_cast<float>(options_.beta2), one_less_beta2 = static_cast<float>(1 - options_.beta2);
    const float step_size = static_cast<float>(learning_rate / correction1);
    const float inverse_root = static_cast<float>(1 / std::sqrt(correction2));
    const float epsilon = static_cast<float>(options_.epsilon), scale = scale_of(gradient_scale);
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
};

}  // namespace

std::unique_ptr<FlatOptimizer> make_cpu_optimizer(const OptimizerOptions& options, const torch::Tensor& like) {
  if (options.name == "sgd") return std::make_unique<CpuSgd>(options, like);
  return std::make_unique<CpuAdam>(options, like);
}

}  // namespace tutti
