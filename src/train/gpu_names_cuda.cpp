#include <ATen/cuda/CUDAContext.h>
#include <torch/cuda.h>

#include <cstdlib>

#include "train/gpu_names.h"

namespace tutti {

std::vector<std::string> gpu_names() {
  std::vector<std::string> names;
  if (!torch::cuda::is_available()) return names;
  const auto count = static_cast<int>(torch::cuda::device_count());
  for (int device = 0; device < count; ++device) names.emplace_back(at::cuda::getDeviceProperties(device)->name);
  return names;
}

std::string gpu_id(int device) {
  const cudaUUID_t& uuid = at::cuda::getDeviceProperties(device)->uuid;
  // NCCL takes ranks with different ids of a host for ranks of different machines, and lets them share a GPU.
  const char* const host = std::getenv("NCCL_HOSTID");
  return (host == nullptr ? "" : host) + std::string(uuid.bytes, sizeof uuid.bytes);
}

}  // namespace tutti
