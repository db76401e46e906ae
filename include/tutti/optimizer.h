#pragma once

#include <string>

namespace tutti {

/// Which optimizer applies the gradients, and how. Same formulas as torch::optim.
struct OptimizerOptions {
  std::string name = "sgd";  // sgd, adam, adamw
  double momentum = 0;       // sgd
  bool nesterov = false;     // sgd
  double beta1 = 0.9;        // adam, adamw
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
};

}  // namespace tutti
