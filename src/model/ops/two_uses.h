#pragma once

#include <torch/types.h>

namespace tutti {

/// One tensor for two uses. Where its maker can, it takes the gradients of both as they are, and autograd need not add
/// them up before. Both lie in the same memory: neither may be changed in place.
struct TwoUses {
  torch::Tensor first, second;
};

}  // namespace tutti
