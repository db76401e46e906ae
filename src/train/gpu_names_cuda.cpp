#include <ATen/cuda/CUDAContext.h>
#include <torch/cuda.h>

#include "train/gpu_names.h"

namespace tutti {

std::vector<std::string> gpu_names() {
  std::vector<std::string> names;
  if (!torch::cuda::is_available()) return names;
  const auto count = static_cast<int>(torch::cuda::device_count());
  for (int device = 0; device < count; ++device) names.emplace_back(at::cuda::getDeviceProperties(device)->name);
  return names;
}

}  // namespace tutti
