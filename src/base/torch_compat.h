#pragma once

// What differs between the libtorch versions that Tutti builds against (1.13 and 2.x).

#include <ATen/Context.h>
#include <ATen/autocast_mode.h>
#include <torch/version.h>

namespace tutti {

/// Lets float32 matrix products and convolutions on CUDA round their factors to TF32.
inline void allow_tf32(bool allowed) {
  at::globalContext().setAllowTF32CuBLAS(allowed);
  at::globalContext().setAllowTF32CuDNN(allowed);
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
