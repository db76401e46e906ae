#pragma once

#include <torch/types.h>

#include <vector>

namespace tutti {

/// torch::linear. On a CPU whose torch was built without MKL, by way of oneDNN: Debian's torch multiplies through
/// OpenBLAS, which takes processors newer than itself for ones without AVX and is then eight times slower. On a GPU
/// under autocast, gradients of weights and biases are not rounded to bf16.
torch::Tensor linear(const torch::Tensor& input, const torch::Tensor& weight, const torch::Tensor& bias);

/// The outputs of linear layers with the same input, and that input for whatever else reads it: on a GPU under autocast
/// the layers are one matrix product, and in backward one more adds all gradients of the input up.
struct Projections {
  std::vector<torch::Tensor> outputs;
  torch::Tensor input;
};
Projections projections(const torch::Tensor& input, const std::vector<torch::Tensor>& weights,
                        const std::vector<torch::Tensor>& biases);

}  // namespace tutti
