#pragma once

// The arithmetic of batch normalization, one channel or one element at a time: kernels run it on a GPU, tests on a CPU
// as well.

#include <cmath>

#include "kernels/host_device.h"

namespace tutti {

/// Mean and (biased) variance of a channel's values.
struct Moments {
  double mean, variance;
};

/// From sums over the values less `shift`. That is one of the values: a mean far from zero then costs no digits.
TUTTI_HOST_DEVICE inline Moments moments_of(double sum, double square_sum, double shift, double count) {
  const double offset = sum / count;
  const double variance = square_sum / count - offset * offset;
  return {shift + offset, variance > 0 ? variance : 0};
}

/// A running average after one more value, as torch keeps it.
TUTTI_HOST_DEVICE inline float running_average(float before, double value, double momentum) {
  return static_cast<float>((1 - momentum) * static_cast<double>(before) + momentum * value);
}

/// What normalizes the values of a channel.
struct NormChannel {
  float mean, scale, bias;

  TUTTI_HOST_DEVICE float operator()(float x) const { return fmaf(x - mean, scale, bias); }
};

/// NaN is not below zero and stays NaN, as in torch.
TUTTI_HOST_DEVICE inline bool relu_passes(float value) { return !(value <= 0); }

/// What leads from the gradient of a channel's normalized value to that of the value: with weight w, deviation 1/r and
/// the sums over all `count` values of the channel, dx = w r (g - Σg / count - x̂ Σ(g x̂) / count), x̂ = (x - mean) r.
struct NormGradient {
  float mean, of_gradient, of_value, constant;

  NormGradient() = default;
  TUTTI_HOST_DEVICE NormGradient(float mean_of_x, float inverse_deviation, float weight, float gradient_sum,
                                 float product_sum, float inverse_count)
      : mean(mean_of_x),
        of_gradient(weight * inverse_deviation),
        of_value(-of_gradient * inverse_deviation * product_sum * inverse_count),
        constant(-of_gradient * gradient_sum * inverse_count) {}

  TUTTI_HOST_DEVICE float operator()(float gradient, float x) const {
    return fmaf(of_gradient, gradient, fmaf(of_value, x - mean, constant));
  }
};

}  // namespace tutti
