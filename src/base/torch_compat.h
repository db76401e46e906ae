#pragma once

// What differs between the libtorch versions that Tutti builds against (1.13 and 2.x).

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <ATen/autocast_mode.h>
#include <torch/version.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tutti {

/// How c10::MemoryReportingInfoBase counts bytes.
#if TORCH_VERSION_MAJOR >= 2
using AllocatorTotal = std::size_t;
#else
using AllocatorTotal = int64_t;
#endif

/// Lets float32 matrix products and convolutions on CUDA round their factors to TF32.
inline void allow_tf32(bool allowed) {
  at::globalContext().setAllowTF32CuBLAS(allowed);
  at::globalContext().setAllowTF32CuDNN(allowed);
}

/// Copies each of `from` to its place in `to`, with few kernels where libtorch can.
inline void copy_all(const std::vector<at::Tensor>& to, const std::vector<at::Tensor>& from) {
#if TORCH_VERSION_MAJOR >= 2
  at::_foreach_copy_(to, from);
#else
  for (std::size_t i = 0; i < to.size(); ++i) to[i].copy_(from[i]);
#endif
}

/// softmax(q kᵀ / √size + bias) v for q, k and v of shape [n, heads, length, size], in one operation.
#if TORCH_VERSION_MAJOR >= 2
constexpr bool kHasFusedAttention = true;
inline at::Tensor fused_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& bias,
                                  double dropout) {
  return at::scaled_dot_product_attention(q, k, v, bias, dropout);
}
#else
constexpr bool kHasFusedAttention = false;
inline at::Tensor fused_attention(const at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Tensor&, double) {
  return {};
}
#endif

/// The product of two matrices of bf16, in fp32 as it is summed up, without rounding between.
inline at::Tensor product_in_fp32(const at::Tensor& a, const at::Tensor& b) {
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 8)
  return at::mm(a, b, at::kFloat);
#else
  return at::mm(a, b).to(at::kFloat);
#endif
}

/// Matrix products and convolutions in bfloat16 on CUDA while this is alive; does nothing unless `on`.
class Bf16Autocast {
 public:
  explicit Bf16Autocast(bool on) : on_(on) {
    if (on_) set(true);
  }
  ~Bf16Autocast() {
    if (!on_) return;
    at::autocast::clear_cache();
    set(false);
  }
  Bf16Autocast(const Bf16Autocast&) = delete;
  Bf16Autocast& operator=(const Bf16Autocast&) = delete;

  static bool is_on() {
#if TORCH_VERSION_MAJOR >= 2
    return at::autocast::is_autocast_enabled(at::kCUDA);
#else
    return at::autocast::is_enabled();
#endif
  }

 private:
  static void set(bool enabled) {
#if TORCH_VERSION_MAJOR >= 2
    at::autocast::set_autocast_dtype(at::kCUDA, at::kBFloat16);
    at::autocast::set_autocast_enabled(at::kCUDA, enabled);
#else
    at::autocast::set_autocast_gpu_dtype(at::kBFloat16);
    at::autocast::set_enabled(enabled);
#endif
  }

  bool on_;
};

}  // namespace tutti
