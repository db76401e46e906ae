#pragma once

#include <torch/types.h>

#include "model/layers.h"

namespace tutti {

/// norm(residual + dropout(dense(x))), as both halves of a Transformer's layer end. On a GPU one kernel does what
/// follows the matrix product, and one what precedes it in backward; under autocast the result is bf16 then.
/// `dropout_share` 0: nothing is dropped.
torch::Tensor add_norm(const torch::Tensor& x, const Dense& dense, const torch::Tensor& residual, double dropout_share,
                       const LayerNorm& norm);

/// add_norm(gelu(inner(x)), outer, x, …), the second half of a layer, with one pass less over x's gradient.
torch::Tensor gelu_feed_forward(const torch::Tensor& x, const Dense& inner, const Dense& outer, double dropout_share,
                                const LayerNorm& norm);
/// add_norm(dropout(relu(inner(x))), outer, x, …), likewise.
torch::Tensor relu_feed_forward(const torch::Tensor& x, const Dense& inner, const Dense& outer, double dropout_share,
                                const LayerNorm& norm);

/// norm(x), likewise.
torch::Tensor normalize(const torch::Tensor& x, const LayerNorm& norm);

}  // namespace tutti
