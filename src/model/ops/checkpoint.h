#pragma once

#include <torch/types.h>

#include <functional>
#include <vector>

#include "model/ops/two_uses.h"

namespace tutti {

using Block = std::function<torch::Tensor(const std::vector<torch::Tensor>& inputs)>;
using BlockForTwo = std::function<TwoUses(const std::vector<torch::Tensor>& inputs)>;

/// block(inputs), of which only the inputs are kept for backward. Backward runs the block a second time, with the same
/// random numbers, and goes through what that leaves (Chen et al., "Training Deep Nets with Sublinear Memory Cost",
/// 2016): gradients are the same, memory goes down, time goes up by one forward.
///
/// The block may be run until the graph is gone, so what it refers to has to live as long. Its parameters get their
/// gradients from that inner backward, and so may not be used elsewhere in the same forward.
torch::Tensor checkpoint(Block block, const std::vector<torch::Tensor>& inputs);
TwoUses checkpoint_for_two(BlockForTwo block, const std::vector<torch::Tensor>& inputs);

/// True while a block is run for the second time: what counts batches or averages over them has done so already.
bool is_second_run();

}  // namespace tutti
