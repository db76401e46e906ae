#pragma once

// The arithmetic of optimizers, one element at a time: kernels run it on a GPU, tests on a CPU as well.

#include <cmath>
#include <cstdint>

#include "kernels/host_device.h"

namespace tutti {

/// What changes from step to step. Kernels read it from device memory, so that a recorded step can be run again with
/// other values.
struct StepScalars {
  double learning_rate = 0;
  int64_t step = 0;
};

/// Stochastic gradient descent, with momentum (Nesterov's too) or without, as torch.optim.SGD.
struct SgdRule {
  float momentum = 0;
  float weight_decay = 0;
  bool nesterov = false;
  double rate_factor = 1;  // what the step's learning rate is multiplied by, for the parameters of this rule

  /// What all elements of an update have in common.
  struct Factors {
    float rate, scale;
  };
  TUTTI_HOST_DEVICE Factors factors(double learning_rate, int64_t /*step*/, float gradient_scale) const {
    return {static_cast<float>(learning_rate * rate_factor), gradient_scale};
  }
  TUTTI_HOST_DEVICE void update(const Factors& f, float gradient, float& value) const {
    value -= f.rate * (f.scale * gradient + weight_decay * value);
  }
  /// A zeroed `velocity` makes the first step's momentum equal to its gradient, as torch has it.
  TUTTI_HOST_DEVICE void update(const Factors& f, float gradient, float& value, float& velocity) const {
    const float descent = f.scale * gradient + weight_decay * value;
    velocity = momentum * velocity + descent;
    value -= f.rate * (nesterov ? descent + momentum * velocity : velocity);
  }
};

/// Adam, and AdamW where `decoupled`, as torch.optim has them.
struct AdamRule {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
  bool decoupled = false;
  double rate_factor = 1;

  struct Factors {
    float shrink, decay, beta1, one_less_beta1, beta2, one_less_beta2, step_size, inverse_root, epsilon, scale;
  };
  /// `step` is 1 in the first update of these elements.
  TUTTI_HOST_DEVICE Factors factors(double learning_rate, int64_t step, float gradient_scale) const {
    learning_rate *= rate_factor;
    const double steps = static_cast<double>(step);
    const double correction1 = 1 - pow(beta1, steps), correction2 = 1 - pow(beta2, steps);
    return {static_cast<float>(decoupled ? 1 - learning_rate * weight_decay : 1),
            static_cast<float>(decoupled ? 0 : weight_decay),
            static_cast<float>(beta1),
            static_cast<float>(1 - beta1),
            static_cast<float>(beta2),
            static_cast<float>(1 - beta2),
            static_cast<float>(learning_rate / correction1),
            static_cast<float>(1 / sqrt(correction2)),
            static_cast<float>(epsilon),
            gradient_scale};
  }
  TUTTI_HOST_DEVICE void update(const Factors& f, float gradient, float& value, float& mean, float& square) const {
    const float shrunk = f.shrink * value;
    const float scaled = f.scale * gradient + f.decay * shrunk;
    mean = f.beta1 * mean + f.one_less_beta1 * scaled;
    square = f.beta2 * square + f.one_less_beta2 * scaled * scaled;
    value = shrunk - f.step_size * mean / (sqrtf(square) * f.inverse_root + f.epsilon);
  }
};

/// LAMB (You et al., "Large Batch Optimization for Deep Learning", ICLR 2020, algorithm 2). `direction` is what a value
/// of a tensor goes down along, and the step is the learning rate times the norm of the tensor over the norm of its
/// direction, or the learning rate alone where one of them is 0.
struct LambRule {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-6;
  double weight_decay = 0;
  double rate_factor = 1;

  struct Factors {
    float beta1, one_less_beta1, beta2, one_less_beta2, inverse, inverse_root, epsilon, decay, scale;
    double rate;
  };
  TUTTI_HOST_DEVICE Factors factors(double learning_rate, int64_t step, float gradient_scale) const {
    const double steps = static_cast<double>(step);
    return {static_cast<float>(beta1),
            static_cast<float>(1 - beta1),
            static_cast<float>(beta2),
            static_cast<float>(1 - beta2),
            static_cast<float>(1 / (1 - pow(beta1, steps))),
            static_cast<float>(1 / sqrt(1 - pow(beta2, steps))),
            static_cast<float>(epsilon),
            static_cast<float>(weight_decay),
            gradient_scale,
            learning_rate * rate_factor};
  }
  TUTTI_HOST_DEVICE void average(const Factors& f, float gradient, float& mean, float& square) const {
    const float scaled = f.scale * gradient;
    mean = f.beta1 * mean + f.one_less_beta1 * scaled;
    square = f.beta2 * square + f.one_less_beta2 * scaled * scaled;
  }
  TUTTI_HOST_DEVICE float direction(const Factors& f, float value, float mean, float square) const {
    return f.inverse * mean / (sqrtf(square) * f.inverse_root + f.epsilon) + f.decay * value;
  }
  /// Of a tensor, from the sums of squares of its values and of its direction.
  TUTTI_HOST_DEVICE float rate(const Factors& f, double values, double directions) const {
    return static_cast<float>(f.rate * (values > 0 && directions > 0 ? sqrt(values) / sqrt(directions) : 1));
  }
};

}  // namespace tutti
