#pragma once

// Activations and their derivatives, one element at a time.

#include <cmath>

#include "kernels/host_device.h"

namespace tutti {

/// GELU with the error function, x Φ(x), as torch's without approximation.
struct Gelu {
  static constexpr float kInverseRoot2 = 0.70710678118654752F;
  static constexpr float kInverseRootTau = 0.39894228040143268F;  // 1 / √(2π)

  TUTTI_HOST_DEVICE static float value(float x) { return x * 0.5F * (1 + erff(x * kInverseRoot2)); }
  TUTTI_HOST_DEVICE static float derivative(float x) {
    return 0.5F * (1 + erff(x * kInverseRoot2)) + x * kInverseRootTau * expf(-0.5F * x * x);
  }
};

/// The same for results of 16 bits, with a third of the instructions: Φ by Abramowitz and Stegun's formula 7.1.26,
/// whose error is below 1e-7, and whose exponential is that of the derivative too.
struct ShortGelu {
  TUTTI_HOST_DEVICE static float value(float x) {
    const Parts at = parts(x);
    return fmaxf(x, 0.0F) - fabsf(x) * at.tail;
  }
  TUTTI_HOST_DEVICE static float derivative(float x) {
    const Parts at = parts(x);
    return (x < 0 ? at.tail : 1 - at.tail) + x * Gelu::kInverseRootTau * at.exponential;
  }

 private:
  struct Parts {
    float tail;  // Φ(-|x|), without a difference of numbers close to each other
    float exponential;
  };
  TUTTI_HOST_DEVICE static Parts parts(float x) {
    constexpr float kExponent = -0.72134752044448170F;  // -½ log2(e)
    const float t = inverse(1.0F + 0.3275911F * Gelu::kInverseRoot2 * fabsf(x));
    const float exponential = power_of_2(kExponent * x * x);
    const float series =
        t * (0.127414796F + t * (-0.142248368F + t * (0.7107068705F + t * (-0.7265760135F + t * 0.5307027145F))));
    return {series * exponential, exponential};
  }

  // Without the care that CUDA takes of numbers below 1e-38.
  TUTTI_HOST_DEVICE static float inverse(float x) {
#ifdef __CUDA_ARCH__
    float result;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
    return result;
#else
    return 1 / x;
#endif
  }
  TUTTI_HOST_DEVICE static float power_of_2(float x) {
#ifdef __CUDA_ARCH__
    float result;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
    return result;
#else
    return exp2f(x);
#endif
  }
};

}  // namespace tutti
