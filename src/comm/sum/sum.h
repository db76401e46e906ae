#pragma once

#include <vector>

#include "comm/sum/kernels.h"
#include "tutti/communicator.h"

namespace tutti {

/// Writes the sum of `sources` to all `targets`, with the fastest kernels this machine can run: see SumKernels.
void sum_arrays(DataType type, const std::vector<void*>& targets, const std::vector<const void*>& sources,
                std::size_t count);

/// All kernels that were built and that this machine can run, the fastest last. For tests.
std::vector<SumKernels> runnable_sum_kernels();

}  // namespace tutti
