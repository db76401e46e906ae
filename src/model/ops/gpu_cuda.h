#pragma once

// What the wrappers around kernels have in common.

#include <torch/types.h>

#include "kernels/dropout.h"
#include "kernels/element_type.h"

namespace tutti::gpu {

/// The type that autocast wants computed in, or x's own.
torch::Tensor as_computed(const torch::Tensor& x);

/// `x` as rows one after the other.
ElementType element_type(const torch::Tensor& x);

/// Takes random numbers of torch's generator for a dropout, as torch's own kernels do: seeding has the same effect, and
/// a recorded step gets new ones at each replay. `drawn` is [2] of 64 bits, or undefined to share 0, for backward.
DropoutRun begin_dropout(double share, const torch::Tensor& like, torch::Tensor& drawn);
/// For backward.
DropoutRun same_dropout(double share, const torch::Tensor& drawn);

/// The gradient of a bias, in fp32, from that of rows [n, width].
torch::Tensor sum_of_rows(const torch::Tensor& rows);

/// Throws unless gradients of gradients are not asked for: kernels of backward leave no graph behind.
void refuse_second_derivatives(const char* name);

template <typename T>
T* data_or_null(const torch::Tensor& tensor) {
  return tensor.defined() ? tensor.data_ptr<T>() : nullptr;
}

}  // namespace tutti::gpu
