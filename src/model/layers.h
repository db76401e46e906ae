#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/types.h>

#include <memory>
#include <string>
#include <vector>

namespace tutti {

// Building blocks that several models share. Unlike torch::nn's, these leave weights uninitialized: a model sets them
// once, in its own way, which for a third of a billion numbers is worth it.

/// x weightᵀ + bias.
struct Dense : torch::nn::Module {
  Dense(int64_t inputs, int64_t outputs);
  torch::Tensor operator()(const torch::Tensor& x) const;
  torch::Tensor weight, bias;
};

/// Rows of `weight` by number.
struct Embedding : torch::nn::Module {
  Embedding(int64_t rows, int64_t width);
  torch::Tensor operator()(const torch::Tensor& numbers) const;
  torch::Tensor weight;
};

/// Layer normalization over the last dimension; ones and zeros from the start.
struct LayerNorm : torch::nn::Module {
  LayerNorm(int64_t width, double epsilon);
  torch::Tensor operator()(const torch::Tensor& x) const;
  torch::Tensor weight, bias;
  double epsilon;
};

/// A module that is there for its name in front of others' ("encoder" in "encoder.layers.0").
std::shared_ptr<torch::nn::Module> add_folder(torch::nn::Module& parent, const std::string& name);

/// Keeps `num_batches_tracked` of a model's batch normalizations up to date, with one operation for all of them. A
/// layer that is in evaluation mode, because it is frozen, counts nothing.
class BatchCounter {
 public:
  /// For the layers that `model` has now.
  explicit BatchCounter(const torch::nn::Module& model);
  /// To be called in each forward of training.
  void count();

 private:
  std::vector<std::shared_ptr<torch::nn::BatchNorm2dImpl>> layers_;
};

}  // namespace tutti
