#include <ATen/Parallel.h>

#include "engine/optimizers/cpu.h"
#include "engine/optimizers/cuda.h"

namespace tutti {
namespace {

class CpuSgd : public FlatOptimizer {
 public:
  CpuSgd(const OptimizerOptions& options, const torch::Tensor& like)
      : FlatOptimizer(options, sgd_state(options), like) {}

  void update(const UpdateSlice& slice, double learning_rate, const torch::Tensor& gradient_scale) override {
    const OptimizerOptions& options = options_of(slice);
    learning_rate *= options.rate_factor;
    float* const values = slice.values.data_ptr<float>();
    const float* const gradients = slice.gradients.data_ptr<float>();
    const float rate = static_cast<float>(learning_rate), scale = scale_of(gradient_scale);
    const float decay = static_cast<float>(options.weight_decay);
    if (state().empty()) {
      at::parallel_for(slice.begin, slice.end, kGrain, [=](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) values[i] -= rate * (scale * gradients[i] + decay * values[i]);
      });
      return;
    }
    // A zeroed buffer makes the first step's momentum equal to its gradient, as torch has it.
    float* const momentum = state()[0].data_ptr<float>();
    const float keep = static_cast<float>(options.momentum);
    const bool nesterov = options.nesterov;
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

}  // namespace

std::vector<std::string> sgd_state(const OptimizerOptions& options) {
  if (options.momentum == 0) return {};
  return {"momentum"};
}

std::unique_ptr<FlatOptimizer> make_sgd(const OptimizerOptions& options, const torch::Tensor& like) {
  if (like.is_cuda()) return make_cuda_sgd(options, like);
  return std::make_unique<CpuSgd>(options, like);
}

}  // namespace tutti
