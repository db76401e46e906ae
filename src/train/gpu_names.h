#pragma once

#include <string>
#include <vector>

namespace tutti {

/// Of the GPUs that libtorch can use; none in a build without CUDA.
std::vector<std::string> gpu_names();

}  // namespace tutti
