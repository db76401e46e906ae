#pragma once

#include <string>
#include <vector>

namespace tutti {

/// Of the GPUs that libtorch can use; none in a build without CUDA.
std::vector<std::string> gpu_names();

/// What tells a GPU from every other in the world; "" in a build without CUDA.
std::string gpu_id(int device);

}  // namespace tutti
