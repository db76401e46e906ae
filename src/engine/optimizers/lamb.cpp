// LAMB (You et al., "Large Batch Optimization for Deep Learning", ICLR 2020, algorithm 2). Of each tensor w with
// gradient g: m and v are Adam's means with their bias corrected, u = m / (sqrt(v) + epsilon) + decay w is the
// direction, and the step is rate ‖w‖ / ‖u‖ u. That ratio is 1 where either norm is 0.
#include <ATen/Parallel.h>

#include <cmath>

#include "engine/optimizers/cpu.h"
#include "engine/optimizers/cuda.h"

namespace tutti {
namespace {

/// What Adam's means are divided by in step `step`.
double bias_correction(double beta, int64_t step) { return 1 - std::pow(beta, static_cast<double>(step)); }

class CpuLamb : public FlatOptimizer {
 public:
  CpuLamb(const OptimizerOptions& options, const torch::Tensor& like) : FlatOptimizer(options, adam_state(), like) {}

  void update(const UpdateSlice& slice, double learning_rate, const torch::Tensor& gradient_scale) override {
    const OptimizerOptions& options = options_of(slice);
    learning_rate *= options.rate_factor;
    float* const values = slice.values.data_ptr<float>();
    const float* const gradients = slice.gradients.data_ptr<float>();
    float* const mean = state()[0].data_ptr<float>();
    float* const square = state()[1].data_ptr<float>();
    const float beta1 = static_cast<float>(options.beta1), one_less_beta1 = static_cast<float>(1 - options.beta1);
    const float beta2 = static_cast<float>(options.beta2), one_less_beta2 = static_cast<float>(1 - options.beta2);
    const float inverse1 = static_cast<float>(1 / bias_correction(options.beta1, slice.step));
    const float inverse_root2 = static_cast<float>(1 / std::sqrt(bias_correction(options.beta2, slice.step)));
    const float epsilon = static_cast<float>(options.epsilon), decay = static_cast<float>(options.weight_decay);
    const float scale = scale_of(gradient_scale);
    const auto direction = [=](int64_t i) {
      return inverse1 * mean[i] / (std::sqrt(square[i]) * inverse_root2 + epsilon) + decay * values[i];
    };

    // Norms are added up in blocks and lanes counted from the tensor's begin: the same bits wherever it lies and
    // however many threads there are.
    constexpr int64_t kBlock = 1 << 15;
    constexpr int64_t kLanes = 8;
    struct Sums {
      double values = 0, direction = 0;
    };
    std::vector<Sums> sums(static_cast<std::size_t>((slice.end - slice.begin + kBlock - 1) / kBlock));
    at::parallel_for(0, static_cast<int64_t>(sums.size()), 2, [&](int64_t first, int64_t last) {
      for (int64_t block = first; block < last; ++block) {
        Sums lanes[kLanes];
        const int64_t begin = slice.begin + block * kBlock, end = std::min(begin + kBlock, slice.end);
        for (int64_t i = begin; i < end; ++i) {
          const float gradient = scale * gradients[i];
          mean[i] = beta1 * mean[i] + one_less_beta1 * gradient;
          square[i] = beta2 * square[i] + one_less_beta2 * gradient * gradient;
          const double value = values[i], step = direction(i);
          Sums& lane = lanes[(i - begin) % kLanes];
          lane.values += value * value;
          lane.direction += step * step;
        }
        for (const Sums& lane : lanes) {
          sums[static_cast<std::size_t>(block)].values += lane.values;
          sums[static_cast<std::size_t>(block)].direction += lane.direction;
        }
      }
    });
    Sums all;
    for (const Sums& block : sums) {
      all.values += block.values;
      all.direction += block.direction;
    }
    const bool has_ratio = all.values > 0 && all.direction > 0;
    const float rate =
        static_cast<float>(learning_rate * (has_ratio ? std::sqrt(all.values) / std::sqrt(all.direction) : 1));
    at::parallel_for(slice.begin, slice.end, kGrain, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) values[i] -= rate * direction(i);
    });
  }
};

}  // namespace

std::unique_ptr<FlatOptimizer> make_lamb(const OptimizerOptions& options, const torch::Tensor& like) {
  if (like.is_cuda()) return make_cuda_lamb(options, like);
  return std::make_unique<CpuLamb>(options, like);
}

}  // namespace tutti
