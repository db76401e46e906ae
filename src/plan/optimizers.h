#pragma once

// To add an optimizer: NAME.cpp in engine/optimizers/, which defines make_NAME(), and its line here: name, learning
// rate unless somebody says so, whether it needs whole tensors, what it is, and the options that it reads.
// clang-format off
#define TUTTI_FOR_EACH_OPTIMIZER(use)                                                                     \
  use(sgd, 0.05, false, "gradient descent with momentum", "momentum", "nesterov", "weight-decay")         \
  use(adam, 0.001, false, "gradients over the root of their mean square", "beta1", "beta2", "epsilon", "weight-decay") \
  use(adamw, 0.001, false, "as adam, with decoupled weight decay", "beta1", "beta2", "epsilon", "weight-decay")        \
  use(lamb, 0.001, true, "as adamw, with steps as long as each tensor's weights are large: for large batches", "beta1", "beta2", "epsilon", "weight-decay")
// clang-format on
