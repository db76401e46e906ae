#pragma once

#include <torch/types.h>

namespace tutti {

/// What attention adds to its scores: 0 where `is_token` [n, length] is not 0, and much less where it is. [n, 1, 1,
/// length]
torch::Tensor padding_bias(const torch::Tensor& is_token);

/// Multi-head attention of `queries`, `keys` and `values`, all [n, length, heads × size], which it also returns:
/// softmax(q kᵀ / √size + bias) v for each head. `dropout_share` is the share of attention weights that is dropped.
/// In one fused operation where libtorch has it.
torch::Tensor attention(const torch::Tensor& queries, const torch::Tensor& keys, const torch::Tensor& values,
                        int64_t heads, const torch::Tensor& bias, double dropout_share);

}  // namespace tutti
