#pragma once

#include <functional>

namespace tutti {

/// Seconds for which at least one kernel or copy ran on the GPU during `work`, which waits for them at its end; 0 in a
/// build without CUDA.
double kernel_time(const std::function<void()>& work);

}  // namespace tutti
