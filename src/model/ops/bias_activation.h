#pragma once

#include <torch/types.h>

#include "model/layers.h"

namespace tutti {

// What follows the first matrix product of a feed-forward part. On a GPU one kernel does it, and in backward one gives
// the bias's gradient along with that of the product.

/// gelu(dense(x)), with the error function.
torch::Tensor dense_gelu(const torch::Tensor& x, const Dense& dense);

/// dropout(relu(dense(x))). `dropout_share` 0: nothing is dropped.
torch::Tensor dense_relu(const torch::Tensor& x, const Dense& dense, double dropout_share);

}  // namespace tutti
