#pragma once

#include <cstdint>
#include <functional>

namespace tutti {

/// Seconds for which at least one kernel or copy ran on the GPU during `work`, which waits for them at its end; 0 in a
/// build without CUDA.
double kernel_time(const std::function<void()>& work);

/// Bytes of the GPU's memory that libtorch's allocator has held at most; 0 in a build without CUDA.
int64_t peak_memory();

}  // namespace tutti
